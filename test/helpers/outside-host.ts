import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { run } from '../../src/os/run.ts';

/** An outside host: a network namespace that only knows its own link, so that responses to untranslated packets get lost. */
export interface OutsideHost {
  url: string;
  text: string;
  close(): Promise<void>;
}

export async function outsideHost(): Promise<OutsideHost> {
  const id = `${process.pid % 100_000}`;
  const [namespace, here, there] = [`rdout${id}`, `rdo${id}a`, `rdo${id}b`];
  const third = process.pid % 250;
  const text = `outside ${id}`;
  const folder = mkdtempSync(join(tmpdir(), 'rd-out-'));
  writeFileSync(join(folder, 'index.html'), text);
  await run(['ip', 'netns', 'add', namespace]);
  const url = `http://198.18.${third}.2:8000/`;
  let server: ChildProcess | undefined;
  async function close() {
    if (server && server.exitCode === null && server.signalCode === null) {
      server.kill('SIGKILL');
      await once(server, 'exit');
    }
    await run(['ip', 'netns', 'delete', namespace]);
    rmSync(folder, { recursive: true });
  }
  try {
    await run(['ip', 'link', 'add', here, 'type', 'veth', 'peer', 'name', there, 'netns', namespace]);
    await run(['ip', 'address', 'add', `198.18.${third}.1/30`, 'dev', here]);
    await run(['ip', 'link', 'set', here, 'up']);
    await run(['ip', '-n', namespace, 'address', 'add', `198.18.${third}.2/30`, 'dev', there]);
    await run(['ip', '-n', namespace, 'link', 'set', there, 'up']);
    const command = ['netns', 'exec', namespace, '/bin/busybox', 'httpd', '-f', '-p', '8000', '-h', folder];
    server = spawn('ip', command, { stdio: 'ignore' });
    await untilAnswers(url);
  } catch (error) {
    await close();
    throw error;
  }
  return { url, text, close };
}

/** Repeats GET until there is a response; returns its body. A real program needs a moment before its first response. */
export async function untilAnswers(url: string, limitMs = 20_000): Promise<string> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    try {
      return await fetchText(url);
    } catch (error) {
      if (performance.now() > deadline) throw new Error(`nothing answers at ${url}`, { cause: error });
      await delay(50);
    }
  }
}

export function fetchText(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(url, { agent: false, timeout: 5_000 }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => {
        text += piece;
      });
      response.on('end', () =>
        response.statusCode === 200 ? resolve(text) : reject(new Error(`${response.statusCode}`)),
      );
      response.on('error', reject);
    });
    call.on('timeout', () => call.destroy(new Error('timeout')));
    call.on('error', reject);
    call.end();
  });
}
