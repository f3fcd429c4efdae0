#!/usr/bin/env node
// Stands in for qemu-system-x86_64: a monitor, and a memory that it hands over and takes. SCRIPTED_QEMU says what goes wrong.
const { appendFileSync, rmSync } = require('node:fs');
const { connect, createServer } = require('node:net');

const args = process.argv.slice(2);
const value = (name) => args[args.indexOf(name) + 1];
const wrong = process.env.SCRIPTED_QEMU ?? '';
const unix = (text) => text.slice('unix:'.length).split(',')[0];
const order = (text) => appendFileSync(process.env.SCRIPTED_ORDERS, `${text}\n`);

let status = 'running';
let migration = {};
order('qemu');
if (wrong === 'taken') {
  process.stderr.write("-netdev user,id=net0: Could not set up host forwarding rule 'tcp:127.0.0.1:1-:22'\n");
  process.exit(1);
}
if (args.includes('-incoming')) {
  if (wrong === 'refuse') {
    process.stderr.write('error while loading state for instance 0x0\n');
    process.exit(1);
  }
  status = 'inmigrate';
  createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.on('data', () => undefined);
    socket.on('end', () => {
      socket.end();
      status = 'paused';
    });
  }).listen(unix(value('-incoming')));
}

function migrate({ uri }) {
  migration = { status: 'active' };
  const socket = connect(unix(uri), () => {
    socket.write(Buffer.alloc(300_000, 'memory'));
    if (wrong === 'break') {
      socket.destroy();
      migration = { status: 'failed', 'error-desc': 'it was not to be' };
      return;
    }
    socket.end(() => {
      migration = { status: 'completed' };
      status = 'postmigrate';
    });
  });
}

/** After the answer. */
function end() {
  setTimeout(() => process.exit(0), 10);
}

const answers = {
  'query-status': () => ({ status, running: status === 'running' }),
  'query-migrate': () => (wrong === 'block' ? { 'blocked-reasons': ['it has a share'] } : migration),
  migrate,
  cont: () => {
    status = 'running';
  },
  stop: () => {
    status = 'paused';
  },
  quit: end,
  system_powerdown: end,
};

const monitor = unix(value('-qmp'));
rmSync(monitor, { force: true });
createServer((socket) => {
  socket.on('error', () => undefined);
  socket.write('{"QMP": {}}\n');
  socket.on('data', (data) => {
    for (const line of data.toString().split('\n').filter(Boolean)) {
      const { execute, id, arguments: given } = JSON.parse(line);
      if (!execute.startsWith('q') || execute === 'quit') order(execute);
      const answer = answers[execute]?.(given);
      socket.write(`${JSON.stringify({ id, return: answer ?? {} })}\n`);
    }
  });
}).listen(monitor);
