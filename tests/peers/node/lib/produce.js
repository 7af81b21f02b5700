'use strict';

const { Producer, Message } = require('ali-ons');
const { report } = require('./command');
const { settings, reportErrors } = require('./session');
const { makeBody, idOf } = require('./payload');

const ASYNC_WINDOW = 64;

/**
 * Sends count messages named prefix-000001… and reports each one.
 *
 * Options: name, nameserver, namespace, group, topic, prefix, mode=sync|async|ordered (async keeps many sends in flight),
 * count, rate (per second, 0 is unlimited), orders (ordered mode: message i belongs to order i mod orders), size, tags
 * (list, taken in turn), levels (of delay, taken in turn), keys=true.
 */
async function produce(session, command) {
  const production = new Production(command);
  await production.client.ready();
  session.opened(production.name, production.client, async () => { production.stopped = true; });
  try {
    const inFlight = command.text('mode', 'sync') === 'async' ? ASYNC_WINDOW : 1;
    await Promise.all(Array.from({ length: inFlight }, () => production.sendUntilDone()));
  } finally {
    session.ended(production.name);
    await production.client.close();
  }
  return { sent: production.sent, failed: production.failed };
}

class Production {
  constructor(command) {
    this.command = command;
    this.name = command.text('name');
    this.prefix = command.text('prefix', this.name);
    this.tags = command.list('tags');
    this.levels = command.list('levels');
    this.next = 0;
    this.sent = 0;
    this.failed = 0;
    this.stopped = false;
    this.started = Date.now();
    this.client = new Producer({
      ...settings(command, this.name),
      producerGroup: command.text('group', `producers-${this.name}`),
      maxMessageSize: 4 << 20,
    });
    reportErrors(this.client, this.name);
  }

  async sendUntilDone() {
    const count = this.command.number('count', Number.MAX_SAFE_INTEGER);
    while (!this.stopped && this.next < count) {
      const number = this.next++;
      await this.pace(number);
      await this.send(this.message(number));
    }
  }

  async pace(number) {
    const rate = this.command.number('rate', 0);
    const wait = rate > 0 ? this.started + 1000 * number / rate - Date.now() : 0;
    if (wait > 0) await new Promise(resolve => setTimeout(resolve, wait));
  }

  message(number) {
    const id = `${this.prefix}-${String(number).padStart(6, '0')}`;
    const message = new Message(this.command.text('topic'), makeBody(id, this.command.number('size', 0)));
    if (this.tags.length) message.tags = this.tags[number % this.tags.length];
    if (this.command.flag('keys')) message.keys = [ `key-${id}` ];
    if (this.levels.length) message.delayTimeLevel = Number(this.levels[number % this.levels.length]);
    if (this.command.text('mode', 'sync') === 'ordered') {
      message.shardingKey = `order-${number % this.command.number('orders', 1)}`;
    }
    message.properties.witness = this.name;
    return message;
  }

  async send(message) {
    const body = idOf(message.body); // the client replaces a large body by its compressed form
    try {
      const result = await this.client.send(message);
      this.sent++;
      report({ event: 'sent', name: this.name, body, status: result.sendStatus, broker: result.messageQueue.brokerName,
        queue: Number(result.messageQueue.queueId), offset: result.queueOffset, msgId: result.msgId });
    } catch (problem) {
      this.failed++;
      report({ event: 'failed', name: this.name, body, error: String(problem) });
    }
  }
}

module.exports = { produce };
