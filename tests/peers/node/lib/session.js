'use strict';

const { report } = require('./command');

/** What runs in this process right now, by the name the test gave it, and how each of them is ended. */
class Session {
  constructor() {
    this.running = new Map();
  }

  opened(name, client, close) {
    if (this.running.has(name)) throw new Error(`already running: ${name}`);
    this.running.set(name, { client, close });
  }

  client(name) {
    if (!this.running.has(name)) throw new Error(`no such client: ${name}`);
    return this.running.get(name).client;
  }

  ended(name) {
    this.running.delete(name);
  }

  async close(name) {
    const entry = this.running.get(name);
    this.ended(name);
    if (entry) await entry.close();
    return {};
  }

  async closeAll() {
    for (const name of [ ...this.running.keys() ]) await this.close(name);
  }
}

const silent = () => {};

/** Settings that every client takes; each is an instance of its own, with its own connections. */
function settings(command, name) {
  return {
    nameSrv: command.text('nameserver').split(';'),
    namespace: command.text('namespace', ''),
    instanceName: name,
    httpclient: { request: () => { throw new Error('name servers are given, nobody is asked for them'); } },
    logger: { info: silent, debug: silent, warn: silent, error: console.error },
  };
}

/** The client throws away nothing that goes wrong in its background: it becomes a report. */
function reportErrors(client, name) {
  client.on('error', problem => report({ event: 'trouble', name, error: String(problem) }));
}

module.exports = { Session, settings, reportErrors };
