'use strict';

const { Consumer } = require('ali-ons');
const { report } = require('./command');
const { settings, reportErrors } = require('./session');
const { idOf, intact } = require('./payload');

/**
 * Starts a push consumer that reports every message; "stop name=…" ends it.
 *
 * Options: name, nameserver, namespace, group, topics (list), tags or sql (expression), model=clustering|broadcasting,
 * from=first|last, rebalance (milliseconds between two looks at the group), persist (milliseconds between two commits),
 * fails (how many tries of each message fail), reconsume (how often a failed message is tried again).
 */
async function consume(session, command) {
  const name = command.text('name');
  const client = new Consumer({
    ...settings(command, name),
    consumerGroup: command.text('group'),
    isBroadcast: command.text('model', 'clustering') === 'broadcasting',
    consumeFromWhere: `CONSUME_FROM_${command.text('from', 'first').toUpperCase()}_OFFSET`,
    rebalanceInterval: command.number('rebalance', 500),
    persistConsumerOffsetInterval: command.number('persist', 500),
    maxReconsumeTimes: command.number('reconsume', 16),
  });
  reportErrors(client, name);
  const filter = command.text('sql', '')
    ? { expressionType: 'SQL92', subString: command.text('sql') }
    : command.text('tags', '*');
  for (const topic of command.list('topics')) {
    client.subscribe(topic, filter, async (message, queue) => {
      note(name, message, queue);
      return message.reconsumeTimes < command.number('fails', 0) ? failed(message) : undefined;
    });
  }
  await client.ready();
  session.opened(name, client, () => client.close());
  return { client: client.clientId };
}

/** A listener may return ACTION_RETRY, but for a message that is tried again the client hears only an exception. */
function failed(message) {
  if (message.reconsumeTimes > 0) throw new Error('failed as asked');
  return Consumer.ACTION_RETRY;
}

function note(name, message, queue) {
  report({ event: 'message', name, topic: message.topic, broker: queue && queue.brokerName, queue: message.queueId,
    offset: Number(message.queueOffset), body: idOf(message.body), size: message.body.length, intact: intact(message.body),
    tags: message.tags || null, keys: message.keys || null, witness: message.properties.witness || null,
    tries: message.reconsumeTimes, properties: message.properties, level: message.delayTimeLevel,
    waited: Number(message.storeTimestamp) - Number(message.bornTimestamp) });
}

/** The queues that a push consumer holds right now, as topic/broker/queue. */
function assignment(session, command) {
  const held = [ ...session.client(command.text('name')).processQueueTable.values() ].map(entry => entry.messageQueue);
  return { queues: held.map(queue => `${queue.topic}/${queue.brokerName}/${queue.queueId}`) };
}

module.exports = { consume, assignment };
