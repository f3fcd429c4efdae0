import { expect, test } from 'vitest';
import { COMMANDS } from '../../cli/commands.ts';
import { control, MAINTAINER_SCRIPTS } from '../../release/debian/control.ts';
import { copyrightFile } from '../../release/debian/copyright.ts';
import { manPages } from '../../release/debian/man-pages.ts';
import { sourceTime } from '../../release/source-time.ts';
import { checkEach } from '../helpers/check-each.ts';

const pages = await manPages(COMMANDS, { version: '1.2.3', date: '2026-01-02' });

test('every command of the help has a man page, and others have none', () => {
  const visible = COMMANDS.filter(({ hidden }) => !hidden).map(({ name }) => `rdctl-${name}.1`);
  expect([...pages.keys()].sort()).toEqual(['rdctl.1', ...visible].sort());
});

test('a man page has no text that is read as a request, and no plain hyphen', async () => {
  await checkEach(
    [...pages].map((page) => [page[0], page] as const),
    ([, text]) => {
      const requests = text.split('\n').flatMap((line) => /^['.](\S*)/.exec(line)?.[1] ?? []);
      expect(new Set([...requests, 'TH', 'SH'])).toEqual(
        new Set([...requests.filter((name) => /^(TH|SH|SS|TP|PP|B|BR|I|EX|EE|nf|fi)$/.test(name)), 'TH', 'SH']),
      );
      const flags = text.split('\n').filter((line) => /(?<!\\)--/.test(line));
      expect(flags).toEqual([]);
    },
  );
});

test('the page of a group has its subcommands and their flags', () => {
  expect(pages.get('rdctl-snapshot.1')).toContain(
    '.SS rdctl snapshot create NAME [flags]\nSave the settings and all data of the backend.\n',
  );
  expect(pages.get('rdctl-snapshot.1')).toContain(
    '.TP\n.B \\-\\-stop\nStop the backend, even if it could keep running.\n',
  );
});

test('packages with one license text are one paragraph of the copyright file, and empty lines are dots', () => {
  const fact = { folder: '', version: '1.0.0', license: 'MIT', integrity: '' };
  const texts = ['MIT License\n\nCopyright (c) 2020 Ann\n\nThe above copyright notice shall be included.'];
  const file = copyrightFile(
    [
      { ...fact, name: 'one', texts },
      { ...fact, name: '@a/two', texts },
      { ...fact, name: 'three', license: 'Apache-2.0', texts: ['APACHE TEXT'] },
    ],
    '2026',
  );
  expect(file).toContain(
    'Files: npm/one/*\n npm/@a/two/*\nCopyright: 2020 Ann\nLicense: MIT\n MIT License\n .\n Copyright (c) 2020 Ann\n .\n',
  );
  expect(file).toContain(
    'Files: npm/three/*\nCopyright: the authors of three\nLicense: Apache-2.0\n On Debian systems',
  );
  expect(file).not.toContain('APACHE TEXT');
});

test('the control file has no line that ends a paragraph', () => {
  const text = control({ version: '1-1', architecture: 'amd64', maintainer: 'A <a@b.example>', installedKib: 1 });
  expect(text).not.toMatch(/\n\s*\n/);
  expect(text).toContain('\nRecommends: qemu-system-x86 | qemu-system-arm, ');
});

test('the time of a package is given, or that of the commit', () => {
  expect(sourceTime({ SOURCE_DATE_EPOCH: '1700000000' })).toBe(1_700_000_000);
  expect(() => sourceTime({ SOURCE_DATE_EPOCH: 'today' })).toThrow('SOURCE_DATE_EPOCH is not a number');
});

test('the scripts of the package touch no file and no home', async () => {
  await checkEach(
    Object.entries(MAINTAINER_SCRIPTS).map((each) => [each[0], each] as const),
    ([, text]) => {
      expect(text).toMatch(/^#!\/bin\/sh\nset -e\n/);
      // Except units, which would start a program that is not there.
      expect(text.replaceAll(/^ *rm -f "?\/etc\/systemd\/(?:user|system)\/[\w$./"]*$/gm, '')).not.toMatch(
        /\b(?:rm|rmdir|unlink|find|mv|HOME)\b|~|\/home|\/root\/\./,
      );
    },
  );
});
