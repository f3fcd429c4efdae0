import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadDesired } from '../../profiles/document/load.ts';
import { schemaCheck } from '../helpers/schema-check.ts';

const editorAccepts = schemaCheck('profile');

const HEAD = 'apiVersion: rdctl/v1\nkind: Profile\n';
const SETTINGS = `${HEAD}settings: { version: 19 }\n`;
const PASSWORD = (value: string) =>
  `${HEAD}settings: { version: 19, experimental: { virtualMachine: { proxy: { password: ${value} } } } }\n`;

async function toolAccepts(text: string): Promise<boolean> {
  const context = {
    cwd: '/',
    env: { SET: 'x' },
    platform: 'linux' as const,
    arch: 'x64',
    readStdin: async () => Buffer.from(text),
  };
  return (await loadDesired(['-'], context)).findings.length === 0;
}

describe('what editors accept, the tool accepts', () => {
  test.each([
    SETTINGS,
    `${SETTINGS}state: unmanaged\nprune: [WSL.integrations]\nmetadata: { name: a }\n`,
    `${SETTINGS}locked: { images: { showAll: true }, kubernetes: true }\n`,
    `${SETTINGS}portForwards: [{ namespace: d, service: s, k8sPort: http, hostPort: 8080 }]\n`,
    `${HEAD}settings: { version: 19, diagnostics: { mutedChecks: { A: null, B: true } } }\n`,
    `${HEAD}settings: { version: 19, containerEngine: { name: docker } }\n`,
    `${HEAD}settings: { version: 4, kubernetes: { containerEngine: moby } }\n`,
    PASSWORD('{ fromEnv: SET }'),
    PASSWORD('plain'),
  ])('%s', async (text) => {
    expect(editorAccepts(parse(text))).toBe(true);
    expect(await toolAccepts(text)).toBe(true);
  });
});

describe('what editors reject, the tool rejects', () => {
  test.each([
    HEAD,
    'kind: Profile\nsettings: { version: 19 }\n',
    `${SETTINGS}stat: started\n`,
    `${SETTINGS}state: running\n`,
    `${SETTINGS}prune: [images.showAll]\n`,
    `${SETTINGS}locked: true\n`,
    `${SETTINGS}portForwards: [{ namespace: d, service: s, k8sPort: 80, hostPort: 0 }]\n`,
    `${SETTINGS}portForwards: [{ namespace: d, service: s, k8sPort: 80 }]\n`,
    `${HEAD}settings: {}\n`,
    `${HEAD}settings: { version: 20 }\n`,
    `${HEAD}settings: { version: 19, imags: {} }\n`,
    `${HEAD}settings: { version: 19, images: { showAll: 1 } }\n`,
    `${HEAD}settings: { version: 19, kubernetes: { port: 0 } }\n`,
    `${HEAD}settings: { version: 19, images: { showAll: null } }\n`,
    `${HEAD}settings: { version: 19, images: { namespace: { fromEnv: SET } } }\n`,
    PASSWORD('{ fromEnv: SET, fromFile: x }'),
  ])('%s', async (text) => {
    expect(editorAccepts(parse(text))).toBe(false);
    expect(await toolAccepts(text)).toBe(false);
  });
});
