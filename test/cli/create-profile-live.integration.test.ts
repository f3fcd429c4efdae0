import { describe, expect, test } from 'vitest';
import { rdctl } from '../helpers/cli.ts';
import { scriptedServer } from '../helpers/scripted-server.ts';

const NOTHING = { env: { RDCTL_HOME: '/nowhere' } };
const create = (...argv: string[]) => rdctl(['create-profile', ...argv], NOTHING);

describe('a profile of the settings in force', () => {
  const from = async (settings: object, output: string) => {
    await using server = await scriptedServer(() => ({ body: JSON.stringify(settings) }));
    return await rdctl(['create-profile', '--from-settings', '--output', output], { env: server.env });
  };
  const proxy = (password: string) => ({ experimental: { virtualMachine: { proxy: { password, port: 3128 } } } });

  test('omits the proxy password', async () => {
    const { exit, out, err } = await from({ version: 19, kubernetes: {}, ...proxy('hush') }, 'reg');
    expect(exit).toBe(0);
    expect(out).toContain('port');
    expect(out).not.toMatch(/hush|password/);
    expect(err).toBe(
      'Warning: experimental.virtualMachine.proxy.password is a secret and was left out; use --input or --body to write it.\n',
    );
    expect((await from({ version: 19, kubernetes: {}, ...proxy('') }, 'reg')).err).toBe('');
    const given = await create('--output=plist', '-b', JSON.stringify(proxy('hush')));
    expect(given.out).toContain('<string>hush</string>');
  });

  test('migrates settings of an older application to the current version', async () => {
    const older = { version: 14, kubernetes: {}, experimental: { virtualMachine: { type: 'vz' } } };
    const { out, err } = await from(older, 'plist');
    expect(err).toBe(
      'Note: migrated from version 14 to 19, which 1.24 and later read; --keep-version keeps 14 (1.16 and later).\n',
    );
    expect(out).toContain('<key>version</key>\n    <integer>19</integer>\n');
    expect(out).toContain('<key>virtualMachine</key>\n    <dict>\n      <key>type</key>\n      <string>vz</string>\n');
  });

  test('omits what the target system does not have, because those values would keep its application from starting', async () => {
    const live = {
      version: 19,
      kubernetes: { enabled: false },
      virtualMachine: { memoryInGB: 6, type: 'vz' },
      ...proxy(''),
    };
    const { out, err } = await from(live, 'reg');
    expect(err).toBe(
      'Note: left out, because Windows does not have them: virtualMachine.memoryInGB, virtualMachine.type.\n',
    );
    expect(out).not.toContain('memoryInGB');
    expect(out).toContain('"enabled"=dword:0\n');
    const mac = await from(live, 'plist');
    expect(mac.err).toContain('Note: left out, because macOS does not have them: experimental.virtualMachine.proxy.');
    expect(mac.out).toContain('<integer>6</integer>');
    await using server = await scriptedServer(() => ({ body: JSON.stringify(live) }));
    const asked = ['create-profile', '--from-settings', '--output=reg', '--only=virtualMachine.memoryInGB'];
    expect((await rdctl(asked, { env: server.env })).out).toContain('"memoryInGB"=dword:6\n');
  });

  test('omits what describes this computer', async () => {
    const live = { version: 19, kubernetes: {}, WSL: { integrations: { Ubuntu: true } }, images: { showAll: false } };
    const { exit, out, err } = await from(live, 'reg');
    expect(exit).toBe(0);
    expect(out).not.toContain('Ubuntu');
    expect(err).toBe(
      'Warning: WSL.integrations is specific to this computer and was left out; --only WSL.integrations writes it.\n',
    );
    await using server = await scriptedServer(() => ({ body: JSON.stringify(live) }));
    const argv = ['create-profile', '--from-settings', '--output=reg', '--only=WSL.integrations', '--strict'];
    expect((await rdctl(argv, { env: server.env })).out).toContain('"Ubuntu"=dword:1\n');
  });

  test('reports a refused password', async () => {
    await using server = await scriptedServer(() => ({ status: 401, body: 'Unauthorized' }));
    const { exit, out, err } = await rdctl(['create-profile', '--from-settings', '--output=reg'], { env: server.env });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: 401 Unauthorized: user\/password not accepted/);
  });
});
