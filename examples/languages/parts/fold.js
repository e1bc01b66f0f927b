// A bolt in JavaScript: writes words in lower case.
//
// A message is a JSON document and a line `end`.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

const send = (message) => process.stdout.write(JSON.stringify(message) + '\nend\n');

let isReady = false;
let lines = [];

function handle(message) {
  if (!isReady) {
    isReady = true;
    fs.writeFileSync(path.join(message.pidDir, String(process.pid)), '');
    send({ pid: process.pid });
  } else if (message.stream === '__heartbeat') {
    send({ command: 'sync' });
  } else {
    const [word, number, place] = message.tuple;
    send({
      command: 'emit',
      anchors: [message.id],
      tuple: [word.toLowerCase(), number, place],
      need_task_ids: false,
    });
    send({ command: 'ack', id: message.id });
  }
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  if (line !== 'end') {
    lines.push(line);
  } else {
    const document = lines.join('\n');
    lines = [];
    handle(JSON.parse(document));
  }
});
