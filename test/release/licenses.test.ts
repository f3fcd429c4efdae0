import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describe as describePackages } from '../../release/inside.ts';
import { standaloneLicenses, textOf } from '../../release/licenses.ts';
import { RELINK } from '../../release/relink.ts';
import { LGPL_COMMITS, RUNTIME, RUNTIME_LIBRARIES } from '../../release/runtime-libraries.ts';
import { POLYFILL_TEXTS, RUNTIME_POLYFILLS } from '../../release/runtime-polyfills.ts';
import { checkEach } from '../helpers/check-each.ts';

const notices = standaloneLicenses(describePackages(['node_modules/fastify', 'node_modules/abstract-logging']));

/** What each license text says, whatever its length. */
const GRANTS =
  /permission is (?:hereby )?granted|permitted provided|may copy and distribute|grants? (?:to )?you|use, reproduction|may redistribute|software for any\s+purpose/i;

test('every library of the runtime has a notice, and a text unless it is in the public domain', async () => {
  await checkEach(
    RUNTIME_LIBRARIES.map((each) => [each.name, each] as const),
    ({ name, copyright, texts, license }) => {
      const heading = notices.indexOf(`\n${name} (${license}), `);
      expect(heading).toBeGreaterThan(0);
      const own = texts.filter((file) => file !== 'LICENSE').map(textOf);
      expect([...copyright, ...own].join('\n')).toMatch(/copyright|\(c\)|authored by|public domain/i);
      if (license !== 'blessing') expect(texts).not.toEqual([]);
    },
  );
});

test('every text is whole, is in the notices, and belongs to something inside', async () => {
  const used = [RUNTIME, ...RUNTIME_LIBRARIES].flatMap(({ texts }) => [...texts]);
  const files = readdirSync('release/license-texts');
  expect(files.sort()).toEqual([...new Set([...used, POLYFILL_TEXTS])].filter((file) => file !== 'LICENSE').sort());
  await checkEach(
    files.map((file) => [file, file] as const),
    (file) => {
      const text = textOf(file);
      expect(text).toMatch(GRANTS);
      expect(text.length).toBeGreaterThan(700);
      expect(text).not.toContain('common-licenses');
      expect(notices).toContain(text);
    },
  );
  expect(notices).toContain(textOf('LICENSE'));
});

test('every package that can be in the bundle has a text that grants something', async () => {
  const lock: { packages: Record<string, { dev?: boolean }> } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  const folders = Object.entries(lock.packages).flatMap(([folder, { dev }]) => (folder && !dev ? [folder] : []));
  await checkEach(
    describePackages(folders).map((each) => [each.folder, each] as const),
    ({ texts }) => {
      expect(texts.join('\n')).toMatch(GRANTS);
    },
  );
});

test('every package that the runtime has built in has its text', async () => {
  const text = textOf(POLYFILL_TEXTS);
  await checkEach(
    RUNTIME_POLYFILLS.map((each) => [each.name, each] as const),
    ({ name, license }) => {
      expect(text).toMatch(new RegExp(`(?:^|, )${name} \\d[\\d.]* \\(${license}\\)`, 'm'));
    },
  );
});

test('what the LGPL asks is there: the use, the licenses, the sources by commit, and how to link again', () => {
  const lgpl = RUNTIME_LIBRARIES.filter(({ license }) => license.startsWith('LGPL'));
  expect(lgpl.map(({ name }) => name)).toEqual(['JavaScriptCore', 'tinycc']);
  for (const { name } of lgpl) expect(RELINK).toContain(name);
  for (const commit of Object.values(LGPL_COMMITS)) expect(RELINK).toContain(commit);
  expect(notices).toContain(RELINK);
  expect(notices).toContain('GNU LIBRARY GENERAL PUBLIC LICENSE');
  expect(notices).toContain('GNU LESSER GENERAL PUBLIC LICENSE');
});
