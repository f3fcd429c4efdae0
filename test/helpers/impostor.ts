import { spawn } from 'node:child_process';
import { onTestFinished } from 'vitest';

/** A program of another user that listens on a port, answers like a service, and records what it receives. */
interface Impostor {
  /** All received bytes of all connections, in order of arrival. */
  received(): string;
  /** The number of connections. */
  connections(): number;
}

/** Answers every request with a document that would make a caller run `command`. */
const PROGRAM = `
const [port, command] = process.argv.slice(1);
const document = {
  kind: 'Status', formatVersion: 1, product: 'rdctl', version: '0.1.0', pid: 1, home: '/', startedAt: '', driver: { name: 'host', simulated: false },
  power: 'started', generation: 1, observedGeneration: 1, converged: true, backendState: 'STARTED', vmState: 'STARTED', locked: false,
  conditions: [], machine: { state: 'on' }, engines: {}, cluster: { state: 'absent' }, phases: [], counters: {}, notices: [],
  engine: { name: 'moby', state: 'running', endpoint: 'unix:///tmp/theirs.sock' },
  access: { ssh: ['sh', '-c', command], target: 'x', before: [] }, proof: '0'.repeat(64),
};
const body = JSON.stringify(document);
const answer = 'HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: ' + body.length + '\\r\\n\\r\\n' + body;
const say = (line) => process.stdout.write(line + '\\n');
require('node:net').createServer((socket) => {
  say('connection');
  socket.on('error', () => undefined);
  socket.on('data', (part) => { say(part.toString('base64')); socket.write(answer); });
}).listen(Number(port), '127.0.0.1', () => say('listening'));
`;

/** Ends with the test. `uid`: its user; only root can set another one. */
export async function impostor(port: number, { uid, command = 'true' }: { uid: number; command?: string }) {
  const child = spawn(process.execPath, ['-e', PROGRAM, String(port), command], {
    cwd: '/',
    env: {},
    ...(uid === process.getuid?.() ? {} : { uid, gid: uid }),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  await new Promise<void>((done, fail) => {
    child.once('exit', () => fail(new Error(`no program of the user ${uid} listens on port ${port}`)));
    child.stdout.on('data', (part: Buffer) => {
      text += part.toString();
      if (text.includes('listening\n')) done();
    });
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = () => text.split('\n').slice(1, -1);
  const found: Impostor = {
    received: () =>
      lines()
        .filter((line) => line !== 'connection')
        .map((line) => Buffer.from(line, 'base64').toString('latin1'))
        .join(''),
    connections: () => lines().filter((line) => line === 'connection').length,
  };
  return found;
}
