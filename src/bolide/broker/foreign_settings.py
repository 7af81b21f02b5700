"""Settings of the original that a broker here does not have: what each is by default there, and what it means here.

A line that says what is so by default says nothing, and is taken in silence.  Anything else is warned of with its
meaning, or refused where neglect would be worse than no start: fewer copies of a message than were asked for, an open
door, or an empty broker beside the messages.

The defaults are those that a broker of 5.5.0 has; where older ones differ, both stand.
"""

from typing import NamedTuple

from bolide.model.settings_table import Foreign


class _Area(NamedTuple):
    means: str
    refused: bool
    keys: str
    """`key=default`: a bar stands between two defaults, a plus for a blank, and nothing where the machine decides."""


_AREAS = (
    _Area(
        "there is no replication here: what is acknowledged is on this broker's disk alone, and more was "
        "asked for. Leave it out to accept that",
        True,
        """
        allAckInSyncStateSet=false enableControllerMode=false enableDLegerCommitLog=false inSyncReplicas=1
        minInSyncReplicas=1
        """,
    ),
    _Area(
        "there is neither access control nor encryption here yet: everybody who reaches the port could "
        "send and read. Leave it out to accept that",
        True,
        """
        aclEnable=false authenticationEnabled=false authorizationEnabled=false useTLS=false
        tlsEnable=false tls.enable=false
        """,
    ),
    _Area(
        "a store is kept in files of the default kind alone here, and what another kind holds would not "
        "be found",
        True,
        """
        configManagerVersion=v1 enableConsumeQueueExt=false messageStorePlugIn= readOnlyCommitLogStorePaths=
        storeType=default transRocksDBEnable=false useSingleRocksDBForAllConfigs=false
        """,
    ),
    _Area(
        "older versions spell mappedFileSize… so, newer ones do not know it. Leave it out, or write the "
        "newer name, as the broker that wrote the store understood it",
        True,
        """
        mapedFileSizeCommitLog=1073741824 mapedFileSizeConsumeQueue=6000000
        """,
    ),
    _Area(
        "there is no replication here, and no broker that follows or replaces another",
        False,
        """
        asyncLearner=false brokerElectionPriority=2147483647 brokerHeartbeatInterval=1000 brokerIP2
        brokerNotActiveTimeoutMillis=10000 checkSyncStateSetPeriod=5000 cleanOfflineBrokerInterval=30000
        compatibleWithOldNameSrv=true controllerAddr= controllerHeartBeatTimeoutMills=10000 dLegerGroup=
        dLegerPeers= dLegerSelfId= duplicationEnable=false enableAutoInSyncReplicas=false enableRemoteEscape=false
        enableSlaveActingMaster=false fetchControllerAddrByDnsLookup=false haFlowControlEnable=false
        haHousekeepingInterval=20000 haListenPort=10912 haMasterAddress= haMaxGapNotInSync=268435456
        haMaxTimeSlaveNotCatchup=15000 haSendHeartbeatInterval=5000 haSlaveFallbehindMax=268435456
        haTransferBatchSize=32768 lockInStrictMode=false maxHaTransferByteInSecond=104857600
        maxSlaveResendLength=268435456 offsetCheckInSlave=false preferredLeaderId= replicasPerDiskPartition=1
        sendHeartbeatTimeoutMillis=1000 skipPreOnline=false slaveTimeout=3000
        storePathBrokerIdentity= storePathDLedgerCommitLog= storePathEpochFile= syncBrokerMemberGroupPeriod=1000
        syncBrokerMetadataPeriod=5000 syncControllerMetadataPeriod=10000 syncFromLastFile=false
        syncMasterFlushOffsetWhenStartup=false totalReplicas=1
        """,
    ),
    _Area(
        "there is no access control here, and nothing of it to be set",
        False,
        """
        aclCacheExpiredSecond=600 aclCacheMaxNum=1000 aclCacheRefreshSecond=60 authConfigPath=
        authenticationMetadataProvider= authenticationProvider= authenticationStrategy= authenticationWhitelist=
        authorizationMetadataProvider= authorizationProvider= authorizationStrategy= authorizationWhitelist=
        clusterName= configName= initAuthenticationUser= innerClientAuthenticationCredentials=
        migrateAuthFromV1Enabled=false statefulAuthenticationCacheExpiredSecond=60
        statefulAuthenticationCacheMaxNum=10000 statefulAuthorizationCacheExpiredSecond=60
        statefulAuthorizationCacheMaxNum=10000 userCacheExpiredSecond=600 userCacheMaxNum=1000
        userCacheRefreshSecond=60
        """,
    ),
    _Area(
        "there is no pop consumption here: clients of it are refused",
        False,
        """
        appendAckAsync=false appendCkAsync=false defaultMessageRequestMode=PULL defaultPopShareQueueNum=-1
        enableLitePopLog=false enableNotifyAfterPopOrderLockRelease=true enableNotifyBeforePopCalculateLag=true
        enablePopBatchAck=false enablePopBufferMerge=false enablePopLog=false enablePopMessageThreshold=false
        enablePopMetrics=true enableRetryTopicV2=false enableSkipLongAwaitingAck=false
        initPopOffsetByCheckMsgInMem=true loadBalancePollNameServerInterval=30000
        loadBalanceProcessorThreadPoolNums=32 loadBalanceThreadPoolQueueCapacity=100000
        maxMessageFilterNumForNotification=64 maxPopPollingSize=100000 popCkMaxBufferSize=200000
        popCkOffsetMaxQueueSize=20000 popCkStayBufferTime=10000 popCkStayBufferTimeOut=3000
        popConsumerFSServiceInit=true popConsumerKVServiceEnable=false popConsumerKVServiceInit=false
        popConsumerKVServiceLog=false popFromRetryProbability=20 popFromRetryProbabilityForPriority=0
        popInflightMessageThreshold=10000 popLongPollingForceNotifyInterval=800 popPollingMapExpireTimeSeconds=600
        popPollingMapSize=100000 popPollingSize=1024 popResponseReturnActualRetryTopic=false popReviveConcurrency=32
        popReviveMaxAttemptTimes=16 popReviveMaxReturnSizePerRead=16384 popReviveSkipIfGroupAbsent=true
        priorityOrderAsc=true retrieveMessageFromPopRetryTopicV1=true reviveAckWaitMs=180000 reviveInterval=1000
        reviveMaxSlow=3 reviveQueueNum=8 reviveScanTime=10000 serverLoadBalancerEnable=true
        skipWhenCKRePutReachMaxTimes=false useMessageFilterForNotification=true useSeparateRetryQueue=false
        """,
    ),
    _Area(
        "the end of a transaction is written at once, together with the message that it commits, and there "
        "are no threads, queues and counters for it here",
        False,
        """
        checkTransactionMessageEnable=false enableTransactionMetrics=true endTransactionThreadPoolNums
        transWriteOriginTransHalfEnable=true transactionCheckRocksdbCoreThreads=2
        transactionCheckRocksdbMaxThreads=5 transactionCheckRocksdbQueueCapacity=2000
        transactionMetricFlushInterval=10000 transactionOpBatchInterval=3000 transactionOpMsgMaxSize=4096
        """,
    ),
    _Area(
        "one loop delivers the messages of all delay levels, many at a time, and counts them as any other",
        False,
        """
        delayOffsetUpdateVersionStep=200 enableScheduleAsyncDeliver=false enableScheduleMessageStats=true
        scheduleAsyncDeliverMaxPendingLimit=2000 scheduleAsyncDeliverMaxResendNum2Blocked=3
        """,
    ),
    _Area(
        "timed messages are kept in the timer's wheel alone here, and what another kind of file holds would not "
        "be delivered",
        True,
        """
        timerRocksDBEnable=false
        """,
    ),
    _Area(
        "one loop files and delivers timed messages, many at a time; none is ever skipped, and one that cannot be "
        "stored is tried again until it is",
        False,
        """
        allowRecallWhenBrokerNotWriteable=true disappearTimeAfterStart=-1 maxDelayTime=40 timerCheckMetricsWhen=05
        timerColdDataCheckIntervalMs=60000 timerEnableCheckMetrics=true timerEnableDisruptor=false
        timerEnableRetryUntilSuccess=false timerGetMessageThreadNum=3 timerInterceptDelayLevel=false
        timerMetricSmallThreshold=1000000 timerProgressLogIntervalMs=10000 timerPutMessageThreadNum=3
        timerRecallToTimeWheelEnable=true timerRecallToTimelineEnable=true timerReputServiceCorePoolSize=6
        timerReputServiceMaxPoolSize=6 timerReputServiceQueueCapacity=10000 timerRocksDBPrecisionMs=1000
        timerRocksDBRollIntervalHours=1 timerRocksDBRollMaxTps=8000.0 timerRocksDBRollRangeHours=2
        timerRocksDBStopScan=false timerRocksDBTimeExpiredMaxTps=200000.0 timerSkipUnknownError=false
        timerStopDequeue=false timerStopEnqueue=false timerWarmEnable=false timerWheelSnapshotFlush=false
        timerWheelSnapshotIntervalMs=10000
        """,
    ),
    _Area(
        "an SQL expression is asked of each message when it is read, and of those that come back not at all",
        False,
        """
        bitMapLengthConsumeQueueExt=64|112 enableCalcFilterBitMap=false expectConsumerNumUseFilter=32
        filterSupportRetry=false mappedFileSizeConsumeQueueExt=50331648
        maxErrorRateOfBloomFilter=20
        """,
    ),
    _Area("there are no filter servers here", False, "filterServerNums=0"),
    _Area(
        "a process has one broker here, and no container of several",
        False,
        "isBrokerContainer=false isInBrokerContainer=false",
    ),
    _Area(
        "there are no light queues and topics here",
        False,
        """
        combineCQUseRocksdbForLmq=false enableLiteEventMode=true enableLmq=false enableLmqQuota=false
        enableLmqStats=false enableMultiDispatch=false liteEventCheckInterval=10000
        liteEventFullDispatchDelayTime=10000 liteEventFullDispatchDelayTimeForWildcardGroup=10000
        liteLagCountMetricsEnable=false liteLagLatencyCollectEnable=false liteLagLatencyMetricsEnable=false
        liteLagLatencyTopK=50 liteSubscriptionCheckInterval=120000 liteSubscriptionCheckTimeoutMills=180000
        liteTtlCheckInterval=120000 maxClientEventCount=100 maxLiteSubscriptionCount=100000
        maxLmqConsumeQueueNum=20000 minLiteTTl=900000
        """,
    ),
    _Area(
        "nothing is kept in RocksDB here",
        False,
        """
        bottomMostCompressionTypeForConsumeQueueStore=zstd cleanRocksDBDirtyCQIntervalMin=60
        combineAssignOffsetCQType=default combineCQEnableCheckSelf=false
        combineCQLoadingCQTypes=default;defaultRocksDB combineCQMaxExtraSearchCommitLogFiles=3
        combineCQPreferCQType=default enableRocksDBLog=false indexFileReadEnable=true indexFileWriteEnable=true
        indexRocksDBEnable=false iteratorWhenUseRocksdbConsumeQueue=true maxRocksDBIndexQueryDays=7
        memTableFlushIntervalMs=3600000 realTimePersistRocksDBConfig=true rocksdbCQDoubleWriteEnable=false
        rocksdbCompressionType=lz4 rocksdbFlushWalFrequency=1024 rocksdbWalFileRollingThreshold=1073741824
        statRocksDBCQIntervalSec=10 useSeparateStorePathForRocksdbCQ=false
        """,
    ),
    _Area(
        "there are no compacted topics here",
        False,
        """
        compactionCqMappedFileSize=10485760 compactionMappedFileSize=104857600 compactionScheduleInternal=900000
        compactionThreadNum=6 enableCompaction=true maxOffsetMapSize=104857600
        """,
    ),
    _Area(
        "figures and logs are made in another way here; admin tools get what they ask for",
        False,
        """
        accountStatsEnable=true accountStatsPrintZeroValues=true autoDeleteUnusedStats=false|true
        commercialBaseCount=1 commercialBigCount=1 commercialEnable=true commercialSizePerMsg=4096
        commercialTimerCount=1 commercialTransCount=1 enableConnectionMetrics=true enableDetailStat=true
        enableLagAndDlqMetrics=true enableMessageStoreMetrics=true enableRemotingMetrics=true
        enableRequestMetrics=true enableStatsMetrics=true isolateLogEnable=false maxStatsIdleTimeInMinutes=-1
        metricGrpcExporterIntervalInMills=60000 metricGrpcExporterTimeOutInMills=3000
        metricLoggingExporterIntervalInMills=10000 metricsExportBatchMaxDataPoints=1000 metricsExporterType=DISABLE
        metricsGrpcExporterHeader= metricsGrpcExporterTarget= metricsInDelta=false metricsLabel=
        metricsOtelCardinalityLimit=50000 metricsPromExporterHost= metricsPromExporterPort=5557
        printChannelGroups=false printChannelGroupsMinNum=5 sampleCountThreshold=5000 sampleSteps=32
        """,
    ),
    _Area(
        "there are no thread pools, request queues and Netty buffers here; docs/limits.md says what "
        "bounds requests and connections",
        False,
        """
        ackMessageThreadPoolNums=3|16 ackThreadPoolQueueCapacity=100000 adminBrokerThreadPoolNums=16
        adminBrokerThreadPoolQueueCapacity=10000 asyncSendEnable=true batchDispatchRequestThreadPoolNums=16
        channelExpiredTimeout=120000 channelNotActiveInterval=60000
        clientAsyncSemaphoreValue=65535 clientCallbackExecutorThreads clientChannelMaxIdleTimeSeconds=120
        clientCloseSocketIfTimeout=true clientManageThreadPoolNums=32 clientManagerThreadPoolQueueCapacity=1000000
        clientOnewaySemaphoreValue=65535 clientPooledByteBufAllocatorEnable=false clientSocketRcvBufSize=0
        clientSocketSndBufSize=0 clientWorkerThreads connectTimeoutMillis=3000 consumerManageThreadPoolNums=32
        consumerManagerThreadPoolQueueCapacity=1000000 disableCallbackExecutor=false disableNettyWorkerGroup=false
        dispatchCqThreads=10 enableFastChannelEventProcess=false enableNetWorkFlowControl=false
        enableReconnectForGoAway=true enableShutdownGracefully=false endTransactionPoolQueueCapacity=100000
        heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity=50000 highSpeedMode=false
        isScanAvailableNameSrv=true litePullMessageThreadPoolNums litePullThreadPoolQueueCapacity=100000
        maxReconnectIntervalTimeSeconds=60 processReplyMessageThreadPoolNums pullMessageThreadPoolNums
        pullThreadPoolQueueCapacity=100000 putMessageFutureThreadPoolNums putThreadPoolQueueCapacity=10000
        queryMessageThreadPoolNums queryThreadPoolQueueCapacity=20000 recoverThreadPoolNums=32
        replyThreadPoolQueueCapacity=10000 sendMessageThreadPoolNums sendThreadPoolQueueCapacity=10000
        serverAsyncSemaphoreValue=64 serverCallbackExecutorThreads=0 serverChannelMaxIdleTimeSeconds=120
        serverNettyWorkerGroupEnable=true serverOnewaySemaphoreValue=256 serverPooledByteBufAllocatorEnable=true
        serverSelectorThreads=3 serverSocketBacklog=1024 serverSocketRcvBufSize=0 serverSocketSndBufSize=0
        serverWorkerThreads=8 shutdownWaitTimeSeconds=30 socksProxyConfig={} useEpollNativeSelector=false
        waitTimeMillsInAckQueue=3000
        writeBufferHighWaterMark=0 writeBufferLowWaterMark=0
        """,
    ),
    _Area(
        "name servers are those of namesrvAddr alone here",
        False,
        """
        fetchNameSrvAddrByDnsLookup=false fetchNamesrvAddrByAddressServer=false fetchNamesrvAddrInterval=10000
        updateNameServerAddrPeriod=120000
        """,
    ),
    _Area(
        "registrations are arranged in another way here",
        False,
        """
        enableRegisterProducer=true enableSingleTopicRegister=false enableSplitMetadata=true
        enableSplitRegistration=false registerBrokerTimeoutMills=24000|6000 splitMetadataSize=2000
        splitRegistrationSize=800
        """,
    ),
    _Area(
        "the files of a store are written, read and cleaned in another way here",
        False,
        """
        abortFile=* accessMessageInMemoryHotRatio=26 autoMessageVersionOnTopicLen=true cgColdReadThreshold=3145728
        checkCRCOnRecover=true checkCommitLogOffsetOnRecover=false cleanSwapedMapInterval=300000
        coldCtrStrategyEnable=false coldDataFlowControlEnable=false coldDataScanEnable=false
        commitCommitLogLeastPages=4 commitCommitLogThoroughInterval=200 commitIntervalCommitLog=200
        commitLogForceSwapMapInterval=43200000 commitLogRecoverMaxNum=10 commitLogSwapMapInterval=3600000
        commitLogSwapMapReserveFileNum=100 correctLogicMinOffsetForceInterval=300000
        correctLogicMinOffsetSleepInterval=1 dataReadAheadEnable=true debugLockEnable=false defaultQueryMaxNum=32
        destroyMapedFileIntervalForcibly=120000 diskFallRecorded=true dispatchCqCacheNum=4096
        dispatchFromSenderThread=false enableAcceleratedRecovery=false enableAsyncReput=true enableBatchPush=false
        enableBuildConsumeQueueConcurrently=false enableCleanExpiredOffset=false
        enableLogConsumeQueueRepeatedlyBuildWhenRecover=false enableRunningFlagsInFlush=false
        fastFailIfNoBufferInStorePool=false flushCommitLogTimed=false|true flushConsumeQueueLeastPages=2
        flushConsumerOffsetHistoryInterval=60000 flushIntervalConsumeQueue=1000
        flushLeastPagesWhenWarmMapedFile=4096 globalColdReadThreshold=104857600 isEnableBatchPush=false
        logicQueueForceSwapMapInterval=43200000 logicQueueSwapMapInterval=3600000 logicQueueSwapMapReserveFileNum=20
        logicalDiskSpaceCleanForciblyThreshold=0.8 mappedFileSwapEnable=true
        mapperFileSizeBatchConsumeQueue=13800000 maxAsyncPutMessageRequests=5000 maxBatchDeleteFilesNum=50
        maxChecksumRange=1073741824 maxConsumeQueueScan=20000 maxFilterMessageSize=16000 maxMsgsNumBatch=64
        maxRecoveryCommitlogFiles=30 maxTopicLength=127 messageIndexSafe=false osPageCacheBusyTimeOutMills=1000
        persistConsumerOffsetIncrementally=false pullBatchMaxMessageCount=160 putConsumeQueueDataByFileChannel=true
        putMessageTimeout=8000 putMsgIndexHightWater=600000 readUnCommitted=false recheckReputOffsetFromCq=false
        recoverConcurrently=false searchBcqByCacheEnable=true sharedByteBufferNum=16
        spinLockCollisionRetreatOptimalDegree=1000 storeCheckpoint=* topicQueueLockNum=32 transferMsgByHeap=true
        transientStorePoolEnable=false transientStorePoolSize=5 travelCqFileNumWhenGetMessage=1 useABSLock=false
        usePIDColdCtrStrategy=true useReentrantLockWhenPutMessage=false|true wakeCommitWhenPutMessage=true
        wakeFlushWhenPutMessage=false warmMapedFileEnable=false writeWithoutMmap=false
        """,
    ),
    _Area(
        "this has no effect here",
        False,
        """
        broadcastOffsetExpireMaxSecond=300 broadcastOffsetExpireSecond=120 brokerConfigPath=* brokerTopicEnable=true
        clearRetryTopicWhenDeleteTopic=true clusterTopicEnable=true configBlackList=configBlackList;brokerConfigPath
        consumerOffsetUpdateVersionStep=500
        enableBroadcastOffsetStore=true enableCreateSysGroup=true
        enableMixedMessageType=false estimateAccumulation=true forwardTimeout=3000 litePullMessageEnable=true
        notifyConsumerIdsChangedEnable=true realTimeNotifyConsumerChange=true
        rejectPullConsumerEnable=false rocketmqHome=* startAcceptSendRequestTimeStamp=0
        subscriptionExpiredTimeout=600000
        useStaticSubscription=false validateSystemTopicWhenUpdateTopic=true
        """,
    ),
)


def _listed(area: _Area) -> list[Foreign]:
    found: list[Foreign] = []
    for word in area.keys.split():
        key, separator, defaults = word.partition("=")
        known = tuple(defaults.replace("+", " ").split("|")) if separator else ()
        found.append(Foreign(key, known, area.means, area.refused))
    return found


FOREIGN = {one.key: one for area in _AREAS for one in _listed(area)}
"""Such settings by key."""
