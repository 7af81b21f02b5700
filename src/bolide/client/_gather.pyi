from bolide.client.gather_twin import Batch as Batch
from bolide.client.gather_twin import Lane as Lane
from bolide.client.gather_twin import Lanes as Lanes
from bolide.client.gather_twin import Pool as Pool
from bolide.client.gather_twin import SendFuture as SendFuture
from bolide.client.gather_twin import SendReceipt as SendReceipt
