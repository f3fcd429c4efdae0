import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import type { Client } from '../../src/client/contract.ts';
import { discover } from '../../src/client/discovery.ts';
import { readHistory } from '../../src/state/history-file.ts';
import { places } from '../../src/state/places.ts';
import { startService } from '../helpers/service.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const PROGRAM = `
import { runService } from './src/service.ts';
const options = { env: process.env, platform: 'linux', driver: 'simulated', power: 'started', port: 0, allowHosts: [], policyDirectories: [] };
runService(options).then(() => process.stdout.write('up'));
`;

let program = '';
beforeAll(async () => {
  const { outputFiles } = await build({
    stdin: { contents: PROGRAM, resolveDir: process.cwd(), loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    write: false,
    logLevel: 'error',
  });
  program = outputFiles[0]?.text ?? '';
});

/** A service in its own process, which can be killed. */
async function service(home: string): Promise<{ child: ChildProcess; client: Client }> {
  const env = { PATH: process.env.PATH ?? '', RDCTL_HOME: home, RDCTL_SIMULATED_LATENCY_MS: '0' };
  const child = spawn(process.execPath, ['-'], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdin?.end(program);
  await Promise.race([
    once(child.stdout ?? child, 'data'),
    once(child, 'exit').then(() => Promise.reject(new Error('the service did not start'))),
  ]);
  return { child, client: createClient(await discover({}, env, 'linux')) };
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}

test('when killed during writes, the settings are those of one write, and the next service continues', async () => {
  const home = temporaryDirectory();
  const { settingsFile, previousSettingsFile, connectionFile } = places({ RDCTL_HOME: home }, 'linux', '');
  let generation = 0;
  for (const enough of [1, 4, 9]) {
    const { child, client } = await service(home);
    const sent: string[] = [];
    let accepted = -1;
    const writing = (async () => {
      for (let index = 0; ; index += 1) {
        const name = `round-${enough}-${index}`;
        sent.push(name);
        // Two fields in one write: a mixture would show as a pair that does not match.
        const reply = await client.putSettings({
          version: 19,
          images: { namespace: name },
          containers: { namespace: name },
        });
        expect(reply.generation).toBeGreaterThan(generation);
        generation = reply.generation ?? 0;
        accepted = index;
        if (index === enough) child.kill('SIGKILL');
      }
    })();
    await expect(writing).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_(CONNECTION|NOT_RUNNING)$/) });
    await killed(child);

    const { images, containers } = JSON.parse(readFileSync(settingsFile, 'utf8'));
    expect(images.namespace).toBe(containers.namespace);
    expect(sent.slice(accepted)).toContain(images.namespace);
    expect(JSON.parse(readFileSync(previousSettingsFile, 'utf8'))).toMatchObject({ version: 19 });
    expect(JSON.parse(readFileSync(connectionFile, 'utf8'))).toMatchObject({ pid: child.pid });
  }
  const last = await startService({ home });
  const status = await last.converged();
  expect(status.notices).toEqual([]);
  expect(status.generation).toBeGreaterThan(generation);
});

test('what ran under a killed service is adopted, not restarted', async () => {
  const home = temporaryDirectory();
  const { child, client } = await service(home);
  const first = await startedSteps(client);
  expect(first).toBeGreaterThan(0);
  await killed(child);
  const { client: next, converged, here } = await startService({ home });
  expect((await converged()).counters.steps).toBe(0);
  // Nobody started it.
  expect(await readHistory(here.historyFile)).toEqual([]);
  expect((await next.backendState()).vmState).toBe('STARTED');
});

async function startedSteps(client: Client): Promise<number> {
  for (;;) {
    const { converged, counters } = await client.status();
    if (converged) return counters.steps;
  }
}

test('a second process for the same home is refused, and so is a port in use', async () => {
  const home = temporaryDirectory();
  const { child, client } = await service(home);
  const { pid, version } = await client.status();
  expect(pid).toBe(child.pid);
  expect(version).toBe(JSON.parse(readFileSync(join(process.cwd(), 'package.json'), 'utf8')).version);
  await expect(startService({ home })).rejects.toThrow(`(pid ${pid}, port ${client.connection.port})`);
  await expect(startService({ port: client.connection.port })).rejects.toMatchObject({ code: 'ERR_PORT_IN_USE' });
});
