import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { apiPath } from '../../cli/commands/api.ts';
import { rdctl } from '../helpers/cli.ts';
import { type Reply, type ScriptedServer, scriptedServer } from '../helpers/scripted-server.ts';

const SETTINGS = `${JSON.stringify({ version: 19, kubernetes: { enabled: true } }, null, 2)}\n`;
const OK: Reply = { body: SETTINGS };
const SERVER_SIDE =
  'Error: 500 Internal Server Error: server-side problem: please consult the server logs for more information';

async function against(
  reply: Reply,
  argv: string[],
  stdin = '',
): Promise<Awaited<ReturnType<typeof rdctl>> & { server: ScriptedServer }> {
  await using server = await scriptedServer(() => reply);
  return { ...(await rdctl(argv, { env: server.env, stdin })), server };
}

describe('list-settings', () => {
  test('prints the body and a newline', async () => {
    const { exit, out, err, server } = await against(OK, ['list-settings']);
    expect({ exit, out, err }).toEqual({ exit: 0, out: `${SETTINGS}\n`, err: '' });
    expect(server.received).toMatchObject([{ method: 'GET', path: '/v1/settings', body: '' }]);
    expect(server.received[0]?.headers).toMatchObject({
      authorization: `Basic ${Buffer.from('user:secret').toString('base64')}`,
      'content-type': 'text/plain',
    });
  });

  test.each<[Reply, string]>([
    [{ status: 400, body: 'what is this\nline two' }, 'Error: what is this\nline two\n'],
    [{ status: 401, body: 'Unauthorized' }, 'Error: 401 Unauthorized: user/password not accepted by http://127.0.0.1:'],
    [
      { status: 500, body: 'internal error' },
      'Error: 500 Internal Server Error: server-side problem: please consult the server logs for more information\n',
    ],
    [{ status: 500 }, `${SERVER_SIDE}\n`],
    [{ status: 500, body: 'could not write x: disk full\n' }, `${SERVER_SIDE}\ncould not write x: disk full\n`],
    [{ status: 403, body: 'no such host' }, 'Error: 403 Forbidden (unexpected server error)\nno such host\n'],
    [
      { status: 404, body: 'Unknown command: GET /v1/settings' },
      'Error: 404 Not Found (unexpected server error): the service has no',
    ],
    [{ status: 418 }, "Error: 418 I'm a Teapot (unexpected server error)\n"],
    [{ status: 422, body: 'a\nb' }, 'Error: 422 Unprocessable Entity (unexpected server error)\na\nb\n'],
    [{ status: 503, body: 'busy' }, 'Error: 503 Service Unavailable (unexpected server error)\nbusy\n'],
  ])('%j exits 1', async (reply, text) => {
    const { exit, out, err } = await against(reply, ['list-settings']);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err.startsWith(text), err).toBe(true);
    expect(err).not.toContain('Usage:');
  });

  test('a refused connection', async () => {
    await using server = await scriptedServer(() => OK);
    await server.close();
    const { exit, out, err } = await rdctl(['list-settings'], { env: server.env });
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: connection refused/);
  });

  test('does not follow a redirect, which would send credentials elsewhere', async () => {
    const { exit, out, err, server } = await against({ status: 302, headers: { location: '/v1/x' } }, [
      'list-settings',
    ]);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toBe('Error: 302 Found (unexpected server error)\n');
    expect(server.received).toHaveLength(1);
  });

  test('a dropped connection', async () => {
    const { exit, err } = await against({ drop: true }, ['list-settings']);
    expect(exit).toBe(1);
    expect(err).toMatch(/^Error: Get "http:\/\/127\.0\.0\.1:\d+\/v1\/settings": EOF\n/);
  });

  test('without a connection file: prints the message that scripts match, and a remedy', async () => {
    const home = mkdtempSync(join(tmpdir(), 'rdctl-none-'));
    const { exit, err } = await rdctl(['list-settings'], { env: { RDCTL_HOME: home } });
    expect(exit).toBe(1);
    expect(err).toMatch(
      /^Error: failed to get connection info: open .*app-engine\.json: no such file or directory\n.*rdctl start/,
    );
  });

  test('accepts connection flags before and after its name', async () => {
    await using server = await scriptedServer(() => OK);
    const flags = ['--port', String(server.port), '--user=u', '--password=p'];
    const home = mkdtempSync(join(tmpdir(), 'rdctl-none-'));
    for (const argv of [
      [...flags, 'list-settings'],
      ['list-settings', ...flags],
    ]) {
      expect((await rdctl(argv, { env: { RDCTL_HOME: home } })).exit).toBe(0);
    }
    expect(server.received.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill(`Basic ${btoa('u:p')}`));
  });

  test('refuses a positional argument', async () => {
    const { exit, err, server } = await against(OK, ['list-settings', 'x']);
    expect(exit).toBe(1);
    expect(err).toBe(
      'Error: unknown command "x" for "rdctl list-settings"\nUsage:\n  rdctl list-settings [flags]\n\n' +
        "Run 'rdctl list-settings --help' for its flags.\n\n",
    );
    expect(server.received).toEqual([]);
  });
});

describe('set', () => {
  const against = async (reply: Reply, argv: string[]) => {
    await using server = await scriptedServer(({ method }) => (method === 'GET' ? OK : reply));
    return { ...(await rdctl(argv, { env: server.env })), server };
  };

  test('sends nothing to a program without settings, and trusts none of its answers', async () => {
    for (const reply of [{ body: '<html>welcome' }, { body: '{"ok":true}' }, { body: 'settings updated' }]) {
      await using server = await scriptedServer(() => reply);
      const { exit, out, err } = await rdctl(['set', '--images.show-all'], { env: server.env });
      expect({ exit, out }).toEqual({ exit: 1, out: '' });
      expect(err).toMatch(/^Error: another program answers on 127\.0\.0\.1:\d+, the address in /);
      expect(server.received.map(({ method }) => method)).toEqual(['GET']);
    }
  });

  test('sends one PUT with the version and the given settings', async () => {
    const { exit, out, err, server } = await against({ status: 202, body: 'settings updated; no restart required' }, [
      'set',
      '--kubernetes.enabled=false',
      '--container-engine',
      'docker',
    ]);
    expect({ exit, out, err }).toEqual({ exit: 0, out: 'Status: settings updated; no restart required.\n', err: '' });
    expect(server.received).toMatchObject([
      { method: 'GET', path: '/v1/settings' },
      { method: 'POST', path: '/v2/plan?waitMs=1000' },
      {
        method: 'PUT',
        path: '/v1/settings',
        body: '{"version":19,"containerEngine":{"name":"docker"},"kubernetes":{"enabled":false}}',
      },
      { method: 'GET', path: '/v2/status' },
    ]);
    expect(server.received[2]?.headers['content-type']).toBe('application/json');
  });

  test('an empty answer', async () => {
    const { out } = await against({}, ['set', '--images.show-all']);
    expect(out).toBe('Operation successfully returned with no output.\n');
  });

  test.each<[Reply, string]>([
    [{ status: 400 }, 'Error: 400 Bad Request\n'],
    [{ status: 413, body: 'request body is too long' }, 'Error: 413 Payload Too Large\nrequest body is too long\n'],
    [{ status: 409, body: 'locked' }, 'Error: 409 Conflict (unexpected server error)\nlocked\n'],
  ])('%j is printed with its status', async (reply, err) => {
    expect(await against(reply, ['set', '--images.show-all'])).toMatchObject({ exit: 1, out: '', err });
  });

  test('prints a refusal as the server wrote it', async () => {
    const body = 'errors in attempt to update settings:\nfield "kubernetes.version" is locked';
    const { exit, out, err } = await against({ status: 400, body }, ['set', '--kubernetes-version=1.30.0']);
    expect({ exit, out, err }).toEqual({ exit: 1, out: '', err: `Error: ${body}\n` });
  });

  test('names keys that were not stored', async () => {
    const { err } = await against({ headers: { 'Rdctl-Ignored-Keys': 'a.b, c%2Cd' } }, ['set', '--images.show-all']);
    expect(err.match(/setting (\S+)/g)).toEqual(['setting a.b', 'setting c,d']);
  });

  test('stores a pattern of allowed images that can match nothing, and warns about it', async () => {
    const { exit, err } = await against(OK, ['set', '--container-engine.allowed-images.patterns=foo/b[ao]r']);
    expect(exit).toBe(0);
    expect(err).toMatch(
      /^warning: The pattern "foo\/b\[ao\]r" in "containerEngine\.allowedImages\.patterns" matches nothing: /,
    );
    expect((await against(OK, ['set', '--container-engine.allowed-images.patterns=busybox'])).err).toBe('');
  });

  test.each([
    [['set'], 'set command: no settings to change were given', true],
    [
      ['set', '--kubernetes.enabled', 'false'],
      'unknown command "false" for "rdctl set"\nSpecify boolean values with an equals sign: --kubernetes.enabled=false',
      true,
    ],
    [['set', '--images.namespace=x', 'y'], 'unknown command "y" for "rdctl set"\nUsage:', true],
    [['set', '--kubernetes.enabld'], 'unknown flag: --kubernetes.enabld\nDid you mean --kubernetes.enabled?', true],
    [['set', '--virtual-machine.type=qemu'], 'option --virtual-machine.type is not available on Linux', false],
    [
      ['set', '--container-engine=foo'],
      `invalid value for option --container-engine: "foo"; must be 'containerd', 'docker', or 'moby'`,
      false,
    ],
  ])('refuses %j and sends nothing', async (argv, message, usage) => {
    const { exit, out, err, server } = await against(OK, argv);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err.startsWith(`Error: ${message}\n`), err).toBe(true);
    expect(err.includes('Usage:')).toBe(usage);
    expect(server.received).toEqual([]);
  });

  test('sends another application its own version, and only fields it has', async () => {
    const live =
      (version: number) =>
      ({ method }: { method: string }) =>
        method === 'GET' ? { body: JSON.stringify({ version, kubernetes: {} }) } : { body: 'no changes necessary' };
    const put = async (version: number, flag: string) => {
      await using server = await scriptedServer(live(version));
      const flags = ['--port', String(server.port), '--user=u', '--password=p'];
      const outcome = await rdctl(['set', flag, ...flags], { env: { RDCTL_HOME: join(server.home, 'elsewhere') } });
      return { ...outcome, body: server.received.find(({ method }) => method === 'PUT')?.body };
    };
    expect(await put(16, '--images.show-all')).toMatchObject({
      exit: 0,
      err: '',
      body: '{"version":16,"images":{"showAll":true}}',
    });
    expect(await put(14, '--virtual-machine.memory-in-gb=3')).toMatchObject({
      body: '{"version":14,"virtualMachine":{"memoryInGB":3}}',
    });
    expect(await put(4, '--virtual-machine.memory-in-gb=3')).toMatchObject({
      exit: 0,
      body: '{"version":4,"kubernetes":{"memoryInGB":3}}',
    });
    expect(await put(4, '--application.admin-access')).toMatchObject({
      body: '{"version":4,"kubernetes":{"suppressSudo":false}}',
    });
    expect(await put(19, '--application.theme=dark')).toMatchObject({ exit: 0, err: '' });
    const newer = await put(23, '--images.show-all');
    expect(newer).toMatchObject({ exit: 0, body: '{"version":23,"images":{"showAll":true}}' });
    expect(newer.err).toContain('settings version 23');
    const refused = await put(16, '--application.theme=dark');
    expect(refused).toMatchObject({ exit: 1, body: undefined });
    expect(refused.err).toMatch(
      /^Error: option --application\.theme needs settings version 18 \(Rancher Desktop 1\.23\); the application has version 16\n/,
    );
  });
});

describe('api', () => {
  test.each([
    ['/', '/'],
    ['settings', '/v1/settings'],
    ['/settings', '/v1/settings'],
    ['/v0', '/v0'],
    ['/v12', '/v12'],
    ['/v1x', '/v1/v1x'],
    ['v1/settings', '/v1/v1/settings'],
    ['foo bar', '/v1/foo%20bar'],
    ['/v1/extensions?id=a%2Fb', '/v1/extensions?id=a%2Fb'],
    ['/v2/status?a=b&c=d', '/v2/status?a=b&c=d'],
    ['\u00e9\ud83d\ude00', '/v1/%C3%A9%F0%9F%98%80'],
  ])('%s goes to %s', (endpoint, path) => expect(apiPath(endpoint)).toBe(path));

  test('prints the body and a newline', async () => {
    expect(await against({ body: '[]\n' }, ['api', '/'])).toMatchObject({ exit: 0, out: '[]\n\n', err: '' });
    expect(await against({ status: 204 }, ['api', '/'])).toMatchObject({ exit: 0, out: '', err: '' });
  });

  test('prints a failure as a packet on stdout and the answer on stderr', async () => {
    expect(await against({ status: 404, body: 'no such thing' }, ['api', 'x'])).toMatchObject({
      exit: 1,
      out: '{"message":"404 Not Found"}\n',
      err: 'no such thing\n',
    });
    expect(await against({ status: 503 }, ['api', 'x'])).toMatchObject({
      exit: 1,
      out: '{"message":"503 Service Unavailable"}\n',
      err: '',
    });
  });

  test('does not pass on what another program answers', async () => {
    const page = { body: '<!DOCTYPE html><html>', headers: { 'content-type': 'text/html' } };
    const { exit, out, err } = await against(page, ['api', '/']);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err).toMatch(/^Error: another program answers on .*: its response to GET \/ is a web page\n/);
  });

  test('has a message for a refused password', async () => {
    const { exit, out, err } = await against({ status: 401, body: 'Unauthorized' }, ['api', '/']);
    expect({ exit, out }).toEqual({ exit: 1, out: '{"message":"401 Unauthorized"}\n' });
    expect(err).toMatch(
      /^Unauthorized\n401 Unauthorized: user\/password not accepted by http:\/\/127.*\n.*rdctl start/,
    );
  });

  test('reports a refused connection in full', async () => {
    await using server = await scriptedServer(() => OK);
    await server.close();
    const failed = `dial tcp 127.0.0.1:${server.port}: connect: connection refused\n${server.home}/app-engine.json is stale: the process that wrote it is no longer listening. Start one with \`rdctl start\`.\n`;
    for (const [argv, verb, path] of [
      [['api', '/'], 'Get', '/'],
      [['api', 'x', '-b', '{}'], 'Put', '/v1/x'],
      [['extension', 'ls'], 'Get', '/v1/extensions'],
      [['extension', 'install', 'a/b'], 'Post', '/v1/extensions/install?id=a%2Fb'],
    ] as const) {
      const err = `Error: ${verb} "http://127.0.0.1:${server.port}${path}": ${failed}`;
      expect(await rdctl(argv, { env: server.env })).toEqual({ exit: 1, out: '', err });
    }
  });

  test.each<[string[], string, string, string]>([
    [['api', 'x'], 'GET', '', ''],
    [['api', 'x', '--body', ''], 'GET', '', ''],
    [['api', 'x', '-b', '{"a":1}'], 'PUT', '{"a":1}', ''],
    [['api', 'x', '-Xpost', '--body={}'], 'POST', '{}', ''],
    [['api', 'x', '-X=DELETE'], 'DELETE', '', ''],
    [['api', 'x', '--input', '-'], 'PUT', 'from stdin', 'from stdin'],
    [['api', 'x', '--input=-'], 'PUT', '', ''],
  ])('%j sends %s %j', async (argv, method, body, stdin) => {
    const { exit, server } = await against({ body: 'ok' }, argv, stdin);
    expect(exit).toBe(0);
    expect(server.received).toMatchObject([{ method, body }]);
  });

  test('reads a body from a file, relative to the working directory', async () => {
    await using server = await scriptedServer(() => ({ body: 'ok' }));
    const cwd = mkdtempSync(join(tmpdir(), 'rdctl-input-'));
    writeFileSync(join(cwd, 'body.json'), '{"b":2}');
    await rdctl(['api', 'x', '--input', 'body.json'], { env: server.env, cwd });
    expect(server.received[0]?.body).toBe('{"b":2}');
  });

  test.each<[string[], string, boolean]>([
    [['api'], 'api command: no endpoint specified', true],
    [['api', ''], 'api command: no endpoint specified', true],
    [['api', 'a', 'b'], 'api command: too many endpoints specified ([a b]); exactly one must be specified', true],
    [['api', 'a', '-b', 'x', '--input', '-'], 'api command: --body and --input options cannot both be specified', true],
    [['api', 'a', '--input', '/no/such/file'], 'open /no/such/file: no such file or directory', false],
    [['api', 'a', '-X', 'BAD METHOD'], 'net/http: invalid method "BAD METHOD"', false],
    [['api', '--input'], 'flag needs an argument: --input', true],
    [['api', 'a', '-X'], "flag needs an argument: 'X' in -X", true],
  ])('%j is refused', async (argv, message, usage) => {
    const { exit, out, err, server } = await against(OK, argv);
    expect({ exit, out }).toEqual({ exit: 1, out: '' });
    expect(err.startsWith(`Error: ${message}\n`), err).toBe(true);
    expect(err.includes('Usage:')).toBe(usage);
    expect(server.received).toEqual([]);
  });
});

describe('version and info', () => {
  test('version contacts no service', async () => {
    const text = await rdctl(['version']);
    expect(text).toMatchObject({ exit: 0, err: '' });
    expect(text.out).toMatch(/^rdctl client version: v\d+\.\d+\.\d+, targeting server version: v1\n$/);
    const json = JSON.parse((await rdctl(['version', '-o', 'json'])).out);
    expect(json).toEqual({ version: expect.stringMatching(/^v\d/), apiVersion: 'v1' });
    expect((await rdctl(['--user', 'x', 'version', '--port=1'])).exit).toBe(0);
  });

  const status = (driver: string, state: string, more = {}): Reply => ({
    body: JSON.stringify({
      kind: 'Status',
      formatVersion: 1,
      driver: { name: driver },
      machine: { state, ...more },
      engine: { name: 'moby', state: 'stopped' },
      counters: {},
      conditions: [],
      phases: [],
      notices: [],
    }),
  });

  test('info prints what is known', async () => {
    const host = await against(status('host', 'on'), ['info']);
    expect(host).toMatchObject({ exit: 0, err: '' });
    expect(host.out).toMatch(/^Version: {3}v\S+\nIPAddress: 127\.0\.0\.1\n$/);
    const off = await against(status('host', 'off'), ['info', '--output=json']);
    expect(off.exit).toBe(0);
    expect(JSON.parse(off.out)).toEqual({ version: expect.stringMatching(/^v/), 'ip-address': null });
    expect(off.err).toBe('The address is not known: the machine is off.\n');
    const down = await rdctl(['info'], { env: { RDCTL_HOME: mkdtempSync(join(tmpdir(), 'rdctl-none-')) } });
    expect(down).toMatchObject({ exit: 0, out: expect.stringMatching(/^Version: {3}v\S+\n$/) });
  });

  test('info names the accelerator of a virtual machine, and keeps the lines that scripts parse', async () => {
    const because = 'this host has no /dev/kvm';
    const tcg = status('qemu', 'on', { accelerator: 'tcg', emulatedBecause: because });
    const known = /^Version: {3}v\S+\nIPAddress: 127\.0\.0\.1\n$/;
    expect(await against(tcg, ['info'])).toMatchObject({
      exit: 0,
      out: expect.stringMatching(known),
      err: `The machine is emulated (TCG), which is several times slower than hardware virtualization: ${because}.\n`,
    });
    const json = await against(tcg, ['info', '-o', 'json']);
    expect(json.err).toBe('');
    expect(Object.entries(JSON.parse(json.out))).toEqual([
      ['version', expect.stringMatching(/^v/)],
      ['ip-address', '127.0.0.1'],
      ['accelerator', 'tcg'],
      ['emulated-because', because],
    ]);
    const kvm = status('qemu', 'on', { accelerator: 'kvm' });
    expect(await against(kvm, ['info'])).toMatchObject({
      out: expect.stringMatching(known),
      err: 'The machine runs with KVM.\n',
    });
    expect(await against(kvm, ['info', '-f', 'accelerator'])).toMatchObject({ exit: 0, out: 'kvm\n', err: '' });
    expect(await against(kvm, ['info', '-f', 'accelerator', '-o', 'json'])).toMatchObject({
      out: '{\n  "accelerator": "kvm"\n}\n',
    });
    expect(await against(status('host', 'on'), ['info', '-f', 'accelerator'])).toMatchObject({
      exit: 1,
      out: '',
      err: 'Error: The host driver has no virtual machine.\n',
    });
    expect(await against(status('qemu', 'off'), ['info', '-f', 'accelerator'])).toMatchObject({
      exit: 1,
      err: 'Error: The accelerator is not known: the machine is off.\n',
    });
  });

  test('info does not blame another application for fields outside its interface', async () => {
    const other: Reply = { status: 404, body: 'Unknown command: GET /v2/status' };
    expect(await against(other, ['info'])).toMatchObject({
      exit: 0,
      out: expect.stringMatching(/^Version: {3}v\S+\n$/),
      err: 'The address is not known: another application (Rancher Desktop, or an older release) is running, which does not report it.\n',
    });
  });

  test('info prints a single field', async () => {
    expect((await rdctl(['info', '-f', 'version'])).out).toMatch(/^v\S+\n$/);
    expect(await against(status('host', 'on'), ['info', '--field=ip-address'])).toMatchObject({
      exit: 0,
      out: '127.0.0.1\n',
    });
    const simulated = await against(status('simulated', 'on'), ['info', '--field=ip-address']);
    expect(simulated).toMatchObject({
      exit: 1,
      out: '',
      err: 'Error: The machine of the simulated driver has no address.\n',
    });
    expect((await rdctl(['info', '-f', 'foo'])).err).toMatch(/^Error: unknown field "foo"\nUsage:/);
    expect((await rdctl(['info', '-o', 'xml'])).err).toMatch(
      /^Error: invalid argument "xml" for "-o, --output" flag: value "xml" is not one of the allowed values: \[text json yaml\]\nUsage:/,
    );
  });
});
