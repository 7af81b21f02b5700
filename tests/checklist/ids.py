"""The check-list: one line for each behaviour, and the reason for each that no test shows.

A test covers a behaviour by naming its id in its name or docstring.
"""

IDS: dict[str, str] = dict(
    line.split(" ", 1)
    for line in """\
ST-01 files and folders of a store, with their sizes
ST-02 one log for all topics
ST-03 every field of a record at its place
ST-04 stores go from the original to ours and back
ST-05 a full segment ends with a blank, and the next follows
ST-06 places in the log have no gaps across segments
ST-07 messages of a queue are numbered without holes
ST-08 twenty bytes of a queue entry, with the tag's hash
ST-09 entries are found across queue files
ST-10 limits of bodies, properties and topic names
ST-11 a batch becomes single records
ST-12 hosts with IPv6 addresses
ST-13 two ids of a message, and what each finds
ST-14 many senders at once
ST-15 one broker per directory
FL-01 SYNC_FLUSH answers after the sync
FL-02 ASYNC_FLUSH answers before it
FL-03 one sync for many senders
FL-04 WAIT=false does not wait
FL-05 when a message may be seen
RC-01 the abort file says whether a stop was clean
RC-02 the checkpoint's times
RC-03 a clean restart changes nothing
RC-04 a kill loses nothing that was acknowledged
RC-05 a torn end of the log is cut off
RC-06 queues and index are made again from the log
RC-07 a record is not given to its queue twice
RC-08 without a log the queues are empty
RC-09 a segment made ahead is used
RC-10 files of a wrong length
RT-01 messages go when they are old, at their hour
RT-02 a filling disk deletes earlier, a full one refuses
RT-03 the first offset moves with what is deleted
CF-01 the shapes of the small files
CF-02 a damaged small file gives way to its copy
CF-03 versions of tables
CF-04 committed offsets reach their file
IX-01 bytes of an index file
IX-02 entries of one slot form a chain
IX-03 several keys, and the unique key
IX-04 queries by time
IX-05 keys with equal hashes
IX-06 a full index file is followed by another
IX-07 what is indexed of a message without keys
IX-08 the index after a crash
IX-09 no more results than asked for
RD-01 the status of every offset, and the next one
RD-02 the overflow rule of 4.9.3 and older
RD-03 a slave corrects no offsets
RD-04 how much one pull brings
RD-05 how far one pull looks
RD-06 who is far behind is sent to a slave
RD-07 a queue entry without its message
RD-08 what clients do with each status
RD-09 a pull commits an offset
LP-01 a pull at the end waits its time
LP-02 a new message wakes it
LP-03 one that it does not want leaves it waiting
LP-04 short polling
LP-05 how long clients ask to wait
LP-06 a waiting connection goes away
NS-01 brokers register with all name servers
NS-02 silent brokers are forgotten
NS-03 name servers keep nothing
NS-04 what a route says
NS-05 clients ask for routes again
NS-06 which name server a client asks
NS-07 slaves change no routes
NS-08 a first registration of one topic is refused
NS-09 write permission wiped and given back
TP-01 topics made by a send
TP-02 topics made by hand, for a cluster or a broker
TP-03 more queues to write than to read
TP-04 more queues to read than to write
TP-05 a topic shrinks and loses nothing
TP-06 permissions of topics
TP-07 a broker is drained for maintenance
CM-01 heartbeats make members, groups and retry topics
CM-02 silent and closed clients leave
CM-03 members hear of changes
CM-04 one client id, one member
CM-05 members that subscribe differently
CM-06 one consumer of many topics
CM-07 many groups of one topic
PR-01 queues in turn
PR-02 slow brokers are avoided
PR-03 failed sends are tried elsewhere
PR-04 large bodies are compressed
PR-05 a selector chooses the queue
PR-06 producers use masters alone
PR-07 a busy broker says so at once
PR-08 results that are no errors
CO-01 members share the queues
CO-02 broadcasting
CO-03 ways to share queues
CO-04 every queue has one owner
CO-05 when queues are shared anew
CO-06 others go on for a member that dies
CO-07 where a group begins
CO-08 an offset waits for the slowest message
CO-09 a consumer that has enough stops pulling
CO-10 one pull per queue, again and again
CO-11 how soon offsets are committed
CO-12 pull consumers
CO-13 lite pull consumers
CO-14 a queue without pulls is begun anew
OR-01 a queue is locked by one client
OR-02 a client's own view of its locks
OR-03 one thread for a queue
OR-04 queues change owners between two messages
OR-05 a failed message holds up its queue
OR-06 commit and rollback by hand
OR-07 threads go round among full queues
OR-08 the first pull after a lock asks for the offset
RY-01 failed messages come again through the retry topic
RY-02 how late they come
RY-03 dead letters
RY-04 exceptions count as failures
RY-05 what a client does when sending back fails
RY-06 listeners that take too long
RY-07 a failed message holds up nobody
DE-01 delay levels
DE-02 how delayed messages are stored
DE-03 delays across a restart
DE-04 a delivered message is not delayed again
TM-01 delivery at any time
TM-02 a timed message is called back
TM-03 timed messages across a restart
TX-01 commit and rollback
TX-02 producers are asked about open transactions
TX-03 they are not asked without end
TX-04 others of the group are asked for one that died
TX-05 finished transactions are remembered
RR-01 requests with replies
PO-01 pop and ack
PO-02 messages that are not acked come again
PO-03 their time can be changed
PO-04 many consumers of one queue
PO-05 pop in order
PO-06 pops wait for messages
PO-07 pops across a restart
HA-01 the replication protocol
HA-02 a slave's log is its master's
HA-03 synchronous replication
HA-04 asynchronous replication
HA-05 slaves are read from and not written to
HA-06 a slave has its master's tables
HA-07 consumers go on at a slave
HA-08 brokers of one name
CT-01 a new master is chosen
CT-02 a tail that nobody has is cut off
CT-03 who is in sync
CT-04 what all have confirmed
AM-01 a slave acts as master
FI-01 tags are compared in the queue
FI-02 tags with equal hashes
FI-03 SQL expressions
FI-04 bloom maps
FS-01 filter servers are started
FS-02 uploaded classes filter
FS-03 a class that nobody has uploaded
AD-01 messages by key, id and place
AD-02 offsets by time
AD-03 offsets are reset
AD-04 statistics
AD-05 what a consumer does right now""".splitlines()
)

_POP = "pop consumption is not built: classic clients do not use it"
_HA = "replication is not built: a broker is alone with its name"
_FS = "the original removed filter servers; SQL expressions do their work"

NOT_COVERED: dict[str, str] = {
    **{f"PO-0{number}": _POP for number in range(1, 8)},
    **{f"HA-0{number}": _HA for number in range(1, 9)},
    **{f"CT-0{number}": _HA for number in range(1, 5)},
    **{f"FS-0{number}": _FS for number in range(1, 4)},
    "AM-01": _HA,
    "RD-03": "a broker is never a slave: brokerId above 0 does not start",
    "TP-04": "what it shows is the sharing of queues among members, which CO-03 and CO-04 show for any numbers",
}
"""Why no test names it."""
