'use strict';

// Real Node clients that a test drives: one command per line comes in, answers and reports go out as JSON lines.
// A command is "number verb key=value …" with percent-encoded values; commands run side by side.

const readline = require('readline');
const { parse, report } = require('./lib/command');
const { Session } = require('./lib/session');
const { produce } = require('./lib/produce');
const { consume, assignment } = require('./lib/consume');

const session = new Session();
const verbs = {
  ping: async () => ({}),
  stop: async command => session.close(command.text('name')),
  produce: command => produce(session, command),
  consume: command => consume(session, command),
  assignment: async command => assignment(session, command),
};

async function serve(line) {
  const [ number, ...words ] = line.trim().split(/ +/);
  let answer;
  try {
    const command = parse(words);
    if (!verbs[command.verb]) throw new Error(`unknown verb: ${command.verb}`);
    answer = { ...await verbs[command.verb](command), ok: true };
  } catch (problem) {
    answer = { ok: false, error: String(problem) };
  }
  report({ ...answer, answer: Number(number) });
}

const lines = readline.createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on('line', serve);
lines.on('close', async () => {
  await session.closeAll();
  process.exit(0);
});
