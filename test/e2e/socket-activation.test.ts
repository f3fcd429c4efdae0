import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { places } from '../../src/state/places.ts';
import { activationSocket } from '../../src/state/unit-name.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';
import { commandOf } from '../helpers/tool-program.ts';

/** What systemd does for a socket unit: listens, and on the first connection starts the program with the socket as descriptor 3. */
const SYSTEMD = `
import os, select, socket, sys
path, *argv = sys.argv[1:]
os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, 0o600)
listener.listen(16)
print('listening', flush=True)
while True:
    select.select([listener], [], [])
    pid = os.fork()
    if pid == 0:
        os.dup2(listener.fileno(), 9)
        os.dup2(9, 3, inheritable=True)
        os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1')
        os.execvp(argv[0], argv)
    os.waitpid(pid, 0)
`;

test('the first command that needs the service starts it, again after a shutdown, and history starts nothing', async () => {
  const home = temporaryDirectory();
  const env = { RDCTL_HOME: home, RDCTL_DRIVER: 'simulated', PATH: process.env.PATH };
  const socket = activationSocket(places(env, 'linux', home)) ?? '';
  const argv = ['-c', SYSTEMD, socket, ...commandOf(), 'serve'];
  const systemd = spawn('python3', argv, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    await rdctlProgram(['shutdown'], { env });
    systemd.kill();
    rmSync(socket, { force: true });
  });
  await once(systemd.stdout, 'data');
  const connectionFile = places(env, 'linux', home).connectionFile;
  for (const _ of [1, 2]) {
    expect((await rdctlProgram(['history'], { env })).exit).toBe(0);
    expect(existsSync(connectionFile)).toBe(false);
    const used = await rdctlProgram(['list-settings'], { env });
    expect(used).toMatchObject({ exit: 0, out: expect.stringContaining('"version": 19') });
    expect((await rdctlProgram(['list-settings'], { env })).err).toBe('');
    expect((await rdctlProgram(['shutdown'], { env })).exit).toBe(0);
  }
});
