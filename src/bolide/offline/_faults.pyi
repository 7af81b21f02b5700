from bolide.offline.faults_twin import forget as forget
from bolide.offline.faults_twin import lost_pages as lost_pages
from bolide.offline.faults_twin import watch as watch
