import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PARTS, type Part } from '../../profiles/formats/format.ts';
import type { JsonObject } from '../../src/json.ts';
import { builtTool } from '../helpers/built-tool.ts';
import { rdctlProgram } from '../helpers/cli.ts';
import { flatSettings, registrySettings } from '../helpers/proof/expected.ts';
import { readByHivex } from '../helpers/proof/hivex.ts';
import { WITH_WINE, whyNoIndependentPrograms } from '../helpers/proof/program.ts';
import { readJsons, readPlists } from '../helpers/proof/python.ts';
import { flatJson, flatRead, payloadSettings } from '../helpers/proof/readings.ts';
import { productKeys } from '../helpers/proof/registry.ts';
import { type WineRegistry, wineRegistry } from '../helpers/proof/wine.ts';
import { againstPlistRules, againstSchema } from '../helpers/proof/xmllint.ts';

/** As an administrator would write it, in several scripts of the world. */
const PROFILE = String.raw`apiVersion: rdctl/v1
kind: Profile
metadata: { name: team }
settings:
  version: 19
  application: { locale: zh-hans }
  containerEngine:
    allowedImages: { enabled: true, patterns: [registry.example/工具, 'a"b\c', registry.example/כלי] }
  experimental:
    virtualMachine:
      proxy: { enabled: true, address: http://proxy.example, username: '用户 😀 "\ [x]=;' }
  WSL: { integrations: { 'Ubuntu-开发 [x]=;"\': true, '@': false, '-': true } }
  kubernetes: { port: 6444 }
locked:
  application: { locale: true }
  containerEngine: true
  experimental: true
`;
const WANTED: Readonly<Record<Part, JsonObject>> = {
  locked: {
    version: 19,
    application: { locale: 'zh-hans' },
    containerEngine: {
      allowedImages: { enabled: true, patterns: ['registry.example/工具', 'a"b\\c', 'registry.example/כלי'] },
    },
    experimental: {
      virtualMachine: {
        proxy: { enabled: true, address: 'http://proxy.example', username: '用户 😀 "\\ [x]=;' },
      },
    },
  },
  defaults: {
    version: 19,
    WSL: { integrations: { 'Ubuntu-开发 [x]=;"\\': true, '@': false, '-': true } },
    kubernetes: { port: 6444 },
  },
};

describe.skipIf(whyNoIndependentPrograms() !== undefined)(
  'files written by the built tool, as other programs read them',
  () => {
    const built = builtTool();
    let folder = '';
    let wine: WineRegistry | undefined;
    beforeAll(() => {
      folder = mkdtempSync(join(tmpdir(), 'rdctl-proof-'));
      writeFileSync(join(folder, 'team.yaml'), PROFILE);
      if (WITH_WINE) wine = wineRegistry();
    });
    afterAll(() => {
      wine?.end();
      rmSync(folder, { recursive: true, force: true });
    });

    async function created(name: string, ...argv: string[]): Promise<string> {
      const path = join(folder, name);
      const ran = await rdctlProgram(
        ['create-profile', '--input', join(folder, 'team.yaml'), ...argv, '--out-file', path],
        { entry: built.entry(), env: { RDCTL_HOME: join(folder, 'home') } },
      );
      expect(ran).toMatchObject({ exit: 0, out: '' });
      return path;
    }

    test.each(PARTS)('plist, %s', async (part) => {
      const path = await created(`${part}.plist`, '--output', 'plist', '--part', part);
      expect(againstPlistRules([path])).toBe('');
      expect(readPlists([path]).map((read) => flatRead(read, (value) => value))).toEqual([flatSettings(WANTED[part])]);
    });

    test.each(PARTS)('mobileconfig, %s', async (part) => {
      const path = await created(`${part}.mobileconfig`, '--output', 'mobileconfig', '--part', part);
      expect(againstPlistRules([path])).toBe('');
      expect(readPlists([path]).map((read) => flatRead(read, payloadSettings))).toEqual([flatSettings(WANTED[part])]);
    });

    test.each(PARTS)('json, %s', async (part) => {
      const path = await created(`${part}.json`, '--output', 'json', '--part', part);
      expect(readJsons([path]).map(flatJson)).toEqual([flatSettings(WANTED[part])]);
    });

    const CASES = PARTS.flatMap((part) =>
      (
        [
          ['hklm', 'HKEY_LOCAL_MACHINE'],
          ['hkcu', 'HKEY_CURRENT_USER'],
        ] as const
      ).map(([hive, root]) => ({ part, hive, root })),
    );

    if (WITH_WINE) {
      test.each(CASES)('reg in UTF-16, $part, $hive, by wine', async ({ part, hive, root }) => {
        const argv = ['--output', 'reg', '--type', part, '--hive', hive, '--encoding', 'utf-16le'];
        const path = await created(`${part}-${hive}-16.reg`, ...argv);
        const key = `${root}\\SOFTWARE\\Policies\\Rancher Desktop`;
        expect(wine?.read(readFileSync(path), key).keys).toEqual(
          registrySettings(WANTED[part], `${key}\\${part}`, new Map([[key, new Map()]])),
        );
      });
    }

    test.each(CASES)('reg in UTF-8, $part, $hive, by hivexregedit', async ({ part, hive, root }) => {
      const path = await created(`${part}-${hive}-8.reg`, '--output', 'reg', '--type', part, '--hive', hive);
      const key = `${root}\\SOFTWARE\\Policies\\Rancher Desktop`;
      const { keys } = readByHivex(readFileSync(path, 'utf8'), `${root}\\SOFTWARE`);
      expect(productKeys(keys)).toEqual(registrySettings(WANTED[part], `${key}\\${part}`, new Map([[key, new Map()]])));
    });

    test('admx', async () => {
      const directory = join(folder, 'PolicyDefinitions');
      const ran = await rdctlProgram(['create-profile', '--output', 'admx', '--out-dir', directory], {
        entry: built.entry(),
      });
      expect(ran).toMatchObject({ exit: 0, out: '' });
      const paths = ['RancherDesktop.admx', 'en-US/RancherDesktop.adml'].map((name) => join(directory, name));
      expect(againstSchema('test/helpers/admx.xsd', paths)).toBe('');
    });
  },
);
