'use strict';

const fs = require('fs');

/** A verb and its named options. */
class Command {
  constructor(verb, options) {
    this.verb = verb;
    this.options = options;
  }

  text(key, fallback) {
    const value = this.options.get(key);
    if (value === undefined && fallback === undefined) throw new Error(`${this.verb} needs ${key}=…`);
    return value === undefined ? fallback : value;
  }

  number(key, fallback) {
    return Number(this.text(key, String(fallback)));
  }

  flag(key) {
    return this.text(key, 'false') === 'true';
  }

  /** A comma-separated option; an absent or empty one is an empty list. */
  list(key) {
    return this.text(key, '').split(',').filter(part => part !== '');
  }
}

function parse(words) {
  const options = new Map();
  for (const word of words.slice(1)) {
    const equals = word.indexOf('=');
    if (equals <= 0) throw new Error(`expected key=value, got: ${word}`);
    options.set(word.slice(0, equals), decodeURIComponent(word.slice(equals + 1)));
  }
  return new Command(words[0], options);
}

/** Writes one JSON object as one line, whole and at once. */
function report(fields) {
  fs.writeSync(1, JSON.stringify(fields) + '\n');
}

module.exports = { parse, report };
