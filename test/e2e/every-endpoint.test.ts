import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { busyboxRoot } from '../helpers/busybox.ts';
import { engineJson, runContainer } from '../helpers/engine-client.ts';
import { loopbackRegistry, pushImage } from '../helpers/loopback-registry.ts';
import { whyNoRealEngine } from '../helpers/real-programs.ts';
import { tarOf } from '../helpers/tar.ts';
import { toolHome } from '../helpers/tool-home.ts';

const reason = await whyNoRealEngine();

/** For operations of real programs. */
const PATIENCE = { timeout: 60_000, interval: 100 };

interface Answer {
  status: number;
  text: string;
}

/** Every endpoint of the compatible interface in one story, with a real dockerd, over HTTP without our client. */
describe.skipIf(reason !== undefined)('every endpoint with a real engine', () => {
  test('works from the first call to the factory reset', async () => {
    const { home, rdctl, status } = toolHome();
    expect(await rdctl('start', '--kubernetes.enabled=false', '--wait')).toMatchObject({ exit: 0 });
    const endpoint = (await status()).engine.endpoint ?? '';
    const call = caller(home);
    const state = async () => JSON.parse((await call('GET', '/v1/backend_state')).text).vmState;
    const ready = () => expect.poll(state, PATIENCE).toBe('DISABLED');

    // Listings and facts.
    expect(JSON.parse((await call('GET', '/')).text).slice(0, 3)).toEqual(['GET /', 'GET /v0', 'GET /v1']);
    expect(await call('GET', '/v0')).toEqual({ status: 200, text: '["GET /v0"]' });
    expect(JSON.parse((await call('GET', '/v1')).text)).toHaveLength(27);
    expect(await call('GET', '/v1/about')).toMatchObject({ status: 200, text: expect.stringMatching(/\w/) });

    // Power.
    expect(await call('GET', '/v1/backend_state')).toEqual({
      status: 200,
      text: '{"vmState":"DISABLED","locked":false}',
    });
    expect(await call('PUT', '/v1/backend_state', { vmState: 'STOPPED' })).toEqual({
      status: 202,
      text: 'received backend state',
    });
    await expect.poll(state, PATIENCE).toBe('STOPPED');
    expect(await call('PUT', '/v1/backend_state', { vmState: 'STARTED' })).toMatchObject({ status: 202 });
    await ready();

    // Diagnostics.
    const categories = JSON.parse((await call('GET', '/v1/diagnostic_categories')).text);
    expect(categories).toEqual(expect.arrayContaining(['Networking', 'Utilities', 'Container Engine']));
    const ids = JSON.parse((await call('GET', '/v1/diagnostic_ids?category=Networking')).text);
    expect(ids).toContain('CONNECTED_TO_INTERNET');
    const ran = JSON.parse((await call('POST', '/v1/diagnostic_checks')).text);
    expect(ran.checks.length).toBeGreaterThan(3);
    const again = JSON.parse((await call('GET', '/v1/diagnostic_checks?id=CONNECTED_TO_INTERNET')).text);
    expect(again.checks.map(({ id }: { id: string }) => id)).toEqual(['CONNECTED_TO_INTERNET']);

    // Settings.
    const before = JSON.parse((await call('GET', '/v1/settings')).text);
    expect(before).toMatchObject({ version: 19, containerEngine: { name: 'moby' } });
    const change = { version: 19, diagnostics: { showMuted: true } };
    expect(await call('PUT', '/v1/settings', change)).toEqual({
      status: 202,
      text: 'settings updated; no restart required',
    });
    expect(await call('PUT', '/v1/settings', change)).toEqual({ status: 202, text: 'no changes necessary' });
    expect(await call('PUT', '/v0/settings', change)).toEqual({ status: 202, text: 'no changes necessary' });
    expect(JSON.parse((await call('GET', '/v0/settings')).text).diagnostics.showMuted).toBe(true);
    expect(await call('GET', '/v1/settings/locked')).toEqual({ status: 200, text: '{}\n' });
    const proposal = await call('PUT', '/v1/propose_settings', { containerEngine: { name: 'containerd' } });
    expect(JSON.parse(proposal.text)).toEqual({
      'containerEngine.name': { current: 'moby', desired: 'containerd', severity: 'restart' },
    });
    expect(await call('GET', '/v1/transient_settings')).toMatchObject({
      status: 200,
      text: expect.stringContaining('"noModalDialogs": false'),
    });
    const transient = { preferences: { navItem: { current: 'Kubernetes' } } };
    expect(await call('PUT', '/v1/transient_settings', transient)).toEqual({
      status: 202,
      text: 'Updated Transient Settings',
    });

    // Extensions.
    expect(await call('GET', '/v1/extensions')).toEqual({ status: 200, text: '{}' });
    const registry = await loopbackRegistry();
    onTestFinished(() => registry.close());
    const image = `${registry.host}/sample`;
    await pushExtension(endpoint, image, '1.0.0');
    expect(await call('POST', `/v1/extensions/install?id=${image}:1.0.0`)).toEqual({ status: 201, text: 'Created' });
    expect(JSON.parse((await call('GET', '/v1/extensions')).text)).toMatchObject({ [image]: { version: '1.0.0' } });
    expect(await call('POST', `/v1/extensions/uninstall?id=${image}`)).toEqual({
      status: 201,
      text: `Deleted ${image}`,
    });
    expect(await call('GET', '/v1/extensions')).toEqual({ status: 200, text: '{}' });

    // Port forwards need a cluster, which this driver lacks.
    const forward = { namespace: 'default', service: 'web', k8sPort: 80, hostPort: 18080 };
    expect(await call('POST', '/v1/port_forwarding', forward)).toMatchObject({
      status: 400,
      text: expect.stringMatching(/^Could not forward port/),
    });
    expect(await call('DELETE', '/v1/port_forwarding?namespace=default&service=web&k8sPort=80')).toEqual({
      status: 200,
      text: 'Port forwarding successfully deleted',
    });

    // Snapshots: the contents of a volume are restored.
    await engineJson(endpoint, 'POST', '/images/create?fromSrc=-&repo=test/box&tag=1', busyboxRoot());
    await inVolume(endpoint, 'echo old > /data/file');
    expect(await call('POST', '/v1/snapshots', { name: 'first', description: 'of the test' })).toEqual({
      status: 200,
      text: 'Snapshot successfully created',
    });
    await ready();
    expect(JSON.parse((await call('GET', '/v1/snapshots')).text)).toMatchObject([
      { name: 'first', description: 'of the test' },
    ]);
    await inVolume(endpoint, 'echo new > /data/file');
    expect(await call('POST', '/v1/snapshot/restore?name=first')).toEqual({
      status: 200,
      text: 'Snapshot successfully restored',
    });
    await ready();
    expect(await inVolume(endpoint, 'cat /data/file')).toBe('old\n');
    expect(await call('POST', '/v1/snapshots/cancel')).toEqual({ status: 200, text: 'Snapshot operation canceled' });
    expect(await call('DELETE', '/v1/snapshots?name=first')).toEqual({
      status: 200,
      text: 'Snapshot successfully deleted',
    });

    // Resets: `fast` keeps the images, `wipe` does not.
    expect(await call('PUT', '/v1/k8s_reset', { mode: 'fast' })).toEqual({
      status: 200,
      text: 'Rancher Desktop fast reset successful',
    });
    expect(await imageCount(endpoint)).toBeGreaterThan(0);
    expect(await call('PUT', '/v1/k8s_reset', { mode: 'wipe' })).toEqual({
      status: 200,
      text: 'Rancher Desktop wipe reset successful',
    });
    expect(await imageCount(endpoint)).toBe(0);

    // The end.
    expect(await call('PUT', '/v0/shutdown')).toEqual({ status: 202, text: 'Shutting down.' });
    await gone(call);
    expect(await rdctl('start', '--wait')).toMatchObject({ exit: 0 });
    const last = caller(home);
    expect(await last('PUT', '/v1/factory_reset', { keepSystemImages: true })).toEqual({
      status: 202,
      text: 'Doing a full factory reset....',
    });
    await gone(last);
    expect(await rdctl('list-settings')).toMatchObject({ exit: 1, out: '' });
  });
});

/** Calls the service whose connection file is in `home`. */
function caller(home: string) {
  const { user, password, port } = JSON.parse(readFileSync(join(home, 'app-engine.json'), 'utf8'));
  return (method: string, path: string, body?: object): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const auth = `${user}:${password}`;
      const call = request({ host: '127.0.0.1', port, method, path, auth, agent: false }, (response) => {
        let text = '';
        response.on('data', (part: Buffer) => {
          text += part.toString();
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      call.on('error', reject);
      call.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

/** Resolves when nothing listens any more. */
async function gone(call: ReturnType<typeof caller>): Promise<void> {
  const refused = () =>
    call('GET', '/v1/about').then(
      () => false,
      () => true,
    );
  await expect.poll(refused, PATIENCE).toBe(true);
}

async function imageCount(endpoint: string): Promise<number> {
  const { Images } = await engineJson(endpoint, 'GET', '/info');
  return Number(Images);
}

async function inVolume(endpoint: string, script: string): Promise<string> {
  const command = ['/bin/busybox', 'sh', '-c', `PATH=/bin; busybox ${script}`];
  const { status, output } = await runContainer(endpoint, { image: 'test/box:1', command, binds: ['kept:/data'] });
  expect({ status, output }).toMatchObject({ status: 0 });
  return output;
}

async function pushExtension(endpoint: string, image: string, tag: string): Promise<void> {
  const metadata = { icon: 'icon.svg', ui: { 'dashboard-tab': { title: 'Sample', root: '/ui', src: 'index.html' } } };
  const context = tarOf([
    { path: 'Dockerfile', content: 'FROM scratch\nCOPY metadata.json icon.svg /\nCOPY ui /ui\n', mode: 0o644 },
    { path: 'metadata.json', content: JSON.stringify(metadata), mode: 0o644 },
    { path: 'icon.svg', content: '<svg xmlns="http://www.w3.org/2000/svg"/>', mode: 0o644 },
    { path: 'ui/index.html', content: '<p>Sample</p>', mode: 0o644 },
  ]);
  await engineJson(endpoint, 'POST', `/build?t=${image}:${tag}`, context);
  await pushImage(endpoint, image, tag);
}
