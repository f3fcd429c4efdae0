import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { commandOf } from './tool-program.ts';

/** A command of a document and its documented output. */
export interface Shown {
  command: string;
  printed: string[];
}

/** The commands of the `console` blocks below a heading. */
export function shown(file: string, heading: string): Shown[] {
  const text = readFileSync(file, 'utf8');
  const level = /^#+/.exec(heading)?.[0].length ?? 1;
  const from = text.indexOf(`\n${heading}\n`);
  expect(from, `${file} has the heading ${heading}`).toBeGreaterThan(0);
  const rest = text.slice(from + heading.length + 2);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  const part = end === -1 ? rest : rest.slice(0, end);
  return [...part.matchAll(/^```console\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block
      .split(/^\$ /m)
      .slice(1)
      .map((each): Shown => {
        // A command continues on lines that start with the prompt for continuation.
        const [command = '', ...printed] = each.trimEnd().replaceAll('\\\n> ', '').split('\n');
        return { command: command.replace(/^\.\/(?=rdctl )/, ''), printed };
      }),
  );
}

/** Runs a command line of a document in a directory, with rdctl on the PATH. */
export function runner(directory: string, entry: string) {
  const bin = join(directory, 'bin');
  mkdirSync(bin, { recursive: true });
  const command = commandOf(entry)
    .map((word) => `'${word}'`)
    .join(' ');
  writeFileSync(join(bin, 'rdctl'), `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });
  const env = {
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    HOME: directory,
    RDCTL_HOME: join(directory, 'home'),
    XDG_CONFIG_HOME: join(directory, '.config'),
  };
  return (command: string): Promise<string> =>
    new Promise((done) => {
      // Both streams combined, as a terminal shows them.
      execFile('sh', ['-c', `( ${command} ) 2>&1`], { cwd: directory, env }, (_, stdout) => done(stdout));
    });
}

/** The documented output as a pattern: a line `…` stands for any lines, `…/` for the directory. */
function pattern(printed: readonly string[]): RegExp {
  const lines = printed.map((line) =>
    line === '…' ? '(?:.*\n)*?' : `${line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}\n`,
  );
  return new RegExp(`^${lines.join('')}$`);
}

function asShown(output: string, directory: string): string {
  const lines = output
    .replaceAll(`${directory}/.config/rancher-desktop.`, '/etc/rancher-desktop/')
    .replaceAll(`${directory}/home/config/`, '/home/you/.config/rdctl/')
    .replaceAll(`rdctl at ${directory}/home`, 'rdctl at /home/you/.local/share/rdctl')
    .replaceAll(directory, '…')
    .trimEnd();
  return lines === '' ? '' : `${lines}\n`;
}

/** Times and durations differ from run to run. */
const timeless = (text: string) =>
  text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replace(/\d+ ms|\d+\.\d s\b/g, 'N ms');

/** Runs the commands in a directory and compares their output with the documented one. */
export async function checkAll(all: readonly Shown[], directory: string, entry: string): Promise<void> {
  const run = runner(directory, entry);
  expect(all.length).toBeGreaterThan(0);
  for (const { command, printed } of all) {
    const output = asShown(await run(command), directory);
    expect(timeless(output), `$ ${command}`).toMatch(pattern(printed.map(timeless)));
  }
}
