import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { builtTool } from '../helpers/built-tool.ts';
import { temporaryDirectory } from '../helpers/temp-home.ts';

const { entry } = builtTool();

/** A command of a document and what the document says that it prints. */
interface Shown {
  command: string;
  printed: string[];
}

/** The commands of the `console` blocks below a heading. */
function shown(file: string, heading: string): Shown[] {
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
        const [command = '', ...printed] = each.trimEnd().split('\n');
        return { command, printed };
      }),
  );
}

/** Runs a command line of a document in a directory, as a person would who has rdctl on the path. */
function runner(directory: string) {
  const bin = join(directory, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'rdctl'), `#!/bin/sh\nexec '${process.execPath}' '${entry()}' "$@"\n`, { mode: 0o755 });
  const env = {
    PATH: `${bin}:${process.env.PATH ?? ''}`,
    HOME: directory,
    RDCTL_HOME: join(directory, 'home'),
    XDG_CONFIG_HOME: join(directory, 'config'),
  };
  return (command: string): Promise<string> =>
    new Promise((done) => {
      // Both streams in one, as a terminal shows them.
      execFile('sh', ['-c', `( ${command} ) 2>&1`], { cwd: directory, env }, (_, stdout) => done(stdout));
    });
}

/** Every line that the document shows is printed, in this order; `…` stands for what it leaves out. */
function missing(output: string, { printed }: Shown, directory: string): string[] {
  const lines = output
    .replaceAll(`${directory}/config/rancher-desktop.`, '/etc/rancher-desktop/')
    .replaceAll(directory, '…')
    .split('\n');
  let at = 0;
  return printed.filter((line) => {
    if (line === '…') return false;
    const found = lines.indexOf(line, at);
    if (found === -1) return true;
    at = found + 1;
    return false;
  });
}

async function checkAll(all: readonly Shown[], directory: string): Promise<void> {
  const run = runner(directory);
  expect(all.length).toBeGreaterThan(0);
  for (const each of all) {
    const output = await run(each.command.replace(/^npx /, ''));
    expect(missing(output, each, directory), `$ ${each.command}\n${output}`).toEqual([]);
  }
}

function scene(): string {
  const directory = temporaryDirectory();
  copyFileSync(resolve('examples/locked-down.yaml'), join(directory, 'team.yaml'));
  return directory;
}

const DOCUMENT = 'docs/fleet-profiles.md';
const OLD = `# What we hand out since 2023.
version: 10
application:
  adminAccess: false   # nobody is asked for a password
experimental:
  virtualMachine:
    socketVMNet: true
    type: vz
containerEngine:
  name: docker
`;
const TYPO = `apiVersion: rdctl/v1
kind: Profile
settings:
  version: 19
  kubernetes: { enabld: false, port: 99999 }
locked: { kubernetes: true }
`;

describe('what the documents show is what happens', () => {
  test('the README, as a new user', async () => {
    await checkAll(shown('README.md', '## For fleets'), scene());
  });

  test('from a profile to deployment files, and back', async () => {
    const directory = scene();
    writeFileSync(join(directory, 'typo.yaml'), TYPO);
    const all = [
      ...shown(DOCUMENT, '## From a profile to deployment files'),
      ...shown(DOCUMENT, '## Reading deployment files'),
    ];
    await checkAll(all, directory);
    expect(JSON.parse(readFileSync(join(directory, 'report.json'), 'utf8'))).toMatchObject({
      kind: 'ImportReport',
      counts: { kept: 8, changed: 0, lost: 0 },
    });
  });

  test('on one Linux computer', async () => {
    const directory = scene();
    const run = runner(directory);
    for (const part of ['locked', 'defaults']) {
      await run(`rdctl create-profile --output json --part ${part} --input team.yaml --out-dir linux`);
      mkdirSync(join(directory, 'config'), { recursive: true });
      copyFileSync(join(directory, 'linux', `${part}.json`), join(directory, 'config', `rancher-desktop.${part}.json`));
    }
    const all = shown(DOCUMENT, '### Linux packages');
    for (const each of all) {
      const output = await run(each.command);
      expect(missing(output, each, directory), `$ ${each.command}\n${output}`).toEqual([]);
    }
  });

  test('which releases accept a profile', async () => {
    const directory = scene();
    writeFileSync(join(directory, 'old.yaml'), OLD);
    await checkAll(shown(DOCUMENT, '## Which releases accept a profile'), directory);
    expect(readFileSync(join(directory, 'old.yaml'), 'utf8')).toContain('adminAccess: false   # nobody is asked');
  });
});
