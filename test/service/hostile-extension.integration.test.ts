import { existsSync, readdirSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { SIMULATED_REGISTRY, type SimulatedImage } from '../../src/drivers/machines/simulated/images.ts';
import { HOSTILE_YAML } from '../helpers/hostile-yaml.ts';
import { startService } from '../helpers/service.ts';

/** Puts an image into the simulated registry for one test. */
function publish(reference: string, compose: string): void {
  const registry = SIMULATED_REGISTRY as Record<string, SimulatedImage>;
  const metadata = { icon: 'icon.svg', vm: { composefile: 'compose.yaml' } };
  registry[reference] = {
    labels: {},
    files: { '/metadata.json': JSON.stringify(metadata), '/icon.svg': '<svg/>', '/compose.yaml': compose },
  };
  onTestFinished(() => {
    delete registry[reference];
  });
}

/** One that occupied the parser, one that exhausted the stack, one that exhausted the memory; the stress search has the others. */
const EXAMPLES = ['many keys', 'only brackets', 'aliases of a long text'];

test.each(EXAMPLES)('a compose file with %s is refused, and other requests are answered meanwhile', async (what) => {
  const id = 'simulated/hostile:1';
  publish(`docker.io/${id}`, HOSTILE_YAML[what] ?? '');
  const { client, converged, here } = await startService({ power: 'started' });
  await converged();
  let done = false;
  const began = performance.now();
  const installing = client.request({ method: 'POST', path: `/v1/extensions/install?id=${id}`, timeoutMs: 600_000 });
  const ended = installing.then((reply) => {
    done = true;
    return reply;
  });
  let longest = 0;
  while (!done) {
    const asked = performance.now();
    expect((await client.request({ method: 'GET', path: '/v1/settings' })).status).toBe(200);
    longest = Math.max(longest, performance.now() - asked);
  }
  const reply = await ended;
  expect({ status: reply.status, text: reply.body.toString() }).toEqual({
    status: 422,
    text: expect.stringContaining('Could not copy compose file /compose.yaml'),
  });
  const took = performance.now() - began;
  // A blocked service delays every response; the rest depends on how busy this computer is.
  expect(longest, what).toBeLessThan(Math.max(1_000, took / 4));
  expect(existsSync(here.extensions) ? readdirSync(here.extensions) : []).toEqual([]);
});
