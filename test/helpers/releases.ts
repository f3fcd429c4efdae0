import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { targetSuffix } from '../../src/features/upgrade/sums.ts';
import type { Platform } from '../../src/settings/field.ts';
import { temporaryDirectory } from './temp-home.ts';

/** Of the file for this computer. */
export function releaseFile(version: string): string {
  return `rdctl-${version}-${targetSuffix(process.platform as Platform, process.arch)}`;
}

/** A program that can say its version, and nothing else. */
export function programOf(version: string): string {
  return `#!/bin/sh\n[ "$*" = 'version -o json' ] && echo '{ "version": "v${version}" }'\n`;
}

/** Releases that a real ssh-keygen has signed, in a directory as `npm run dist -- --releases-dir` makes it. */
export interface Releases {
  /** The base. */
  directory: string;
  /** File of the signers that are allowed. */
  signers: string;
  /** A private key that is not among them. */
  otherKey: string;
  /** Publishes a program, given as its text or its path, as the latest version. */
  publish(version: string, program?: string | { path: string }, options?: PublishOptions): void;
}

interface PublishOptions {
  key?: string;
  namespace?: string;
  /** Of the directory and `latest`, where it is not the version in the names. */
  as?: string;
}

export function releases(): Releases {
  const folder = temporaryDirectory();
  const directory = join(folder, 'releases');
  const [key, otherKey] = ['key', 'other'].map((name) => newKey(join(folder, name))) as [string, string];
  const signers = join(folder, 'signers');
  writeFileSync(signers, `release ${readFileSync(`${key}.pub`, 'utf8')}`);
  return {
    directory,
    signers,
    otherKey,
    publish(version, program = programOf(version), { key: by = key, namespace = 'rdctl-release', as = version } = {}) {
      const place = join(directory, as);
      mkdirSync(place, { recursive: true });
      const file = join(place, releaseFile(version));
      if (typeof program === 'string') writeFileSync(file, program);
      else linkOrCopy(program.path, file);
      const sum = createHash('sha256').update(readFileSync(file)).digest('hex');
      const sums = join(place, 'SHA256SUMS');
      writeFileSync(sums, `${sum}  ${basename(file)}\n`);
      // It would ask whether to write over an earlier one.
      rmSync(`${sums}.sig`, { force: true });
      execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', by, '-n', namespace, sums], { stdio: 'ignore' });
      writeFileSync(join(directory, 'latest'), `${as}\n`);
    },
  };
}

/** Another name of a large file that nothing changes in place, or a copy on another file system. */
export function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** @param type as ssh-keygen names it */
export function newKey(path: string, type = 'ed25519'): string {
  execFileSync('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', '', '-f', path]);
  return path;
}

/** A server on the loopback interface, for the time of a test. */
export async function served(answer: RequestListener): Promise<string> {
  const http = createServer(answer);
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

/** Serves the files of a directory. */
export function filesOf(directory: string): RequestListener {
  return (request, response) => {
    try {
      response.end(readFileSync(join(directory, decodeURIComponent(request.url ?? ''))));
    } catch {
      response.writeHead(404).end();
    }
  };
}
