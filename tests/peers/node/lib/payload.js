'use strict';

// Bodies carry their own identity: "id|filler", the filler derived from the id so that damage shows.

function makeBody(id, size) {
  const head = Buffer.from(id + '|');
  const body = Buffer.alloc(Math.max(size, head.length));
  head.copy(body);
  for (let i = head.length; i < body.length; i++) body[i] = 97 + (head[i % head.length] + i) % 26;
  return body;
}

function idOf(body) {
  return body.toString().split('|', 1)[0];
}

function intact(body) {
  return body.equals(makeBody(idOf(body), body.length));
}

module.exports = { makeBody, idOf, intact };
