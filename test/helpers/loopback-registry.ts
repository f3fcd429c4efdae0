import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { freePort } from './free-port.ts';

/** Debian's docker-registry on a free port of 127.0.0.1, with its own store. */
export interface LoopbackRegistry {
  port: number;
  /** `127.0.0.1:PORT`, the first part of an image name. */
  host: string;
  close(): Promise<void>;
}

export async function loopbackRegistry(): Promise<LoopbackRegistry> {
  const folder = mkdtempSync(join(tmpdir(), 'rdctl-registry-'));
  const port = await freePort();
  const config = join(folder, 'config.yml');
  writeFileSync(
    config,
    [
      'version: 0.1',
      'log: { level: error }',
      `storage: { filesystem: { rootdirectory: ${JSON.stringify(join(folder, 'store'))} }, delete: { enabled: true } }`,
      `http: { addr: "127.0.0.1:${port}" }`,
      '',
    ].join('\n'),
  );
  const child = spawn('docker-registry', ['serve', config], { stdio: 'ignore' });
  const close = async () => {
    await ended(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await vi.waitUntil(() => answers(port), { timeout: 60_000 });
  } catch (cause) {
    await close();
    throw new Error('docker-registry does not answer; is it installed?', { cause });
  }
  return { port, host: `127.0.0.1:${port}`, close };
}

/** Pushes an image of the engine with this name. */
export function pushImage(endpoint: string, name: string, tag: string): Promise<void> {
  const socketPath = endpoint.replace(/^unix:\/\//, '');
  const path = `/images/${encodeURIComponent(name)}/push?tag=${tag}`;
  // The engine requires this header even for registries without authentication.
  const headers = { 'X-Registry-Auth': Buffer.from('{}').toString('base64') };
  return new Promise((resolve, reject) => {
    const call = request({ socketPath, method: 'POST', path, headers, agent: false }, (response) => {
      let text = '';
      response.on('data', (part: Buffer) => {
        text += part.toString();
      });
      response.on('end', () => {
        if (response.statusCode === 200 && !text.includes('"errorDetail"')) resolve();
        else reject(new Error(`push of ${name}:${tag}: ${response.statusCode} ${text}`));
      });
    });
    call.on('error', reject);
    call.end();
  });
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill();
  });
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const call = request({ host: '127.0.0.1', port, path: '/v2/', agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    call.on('error', () => resolve(false));
    call.end();
  });
}
