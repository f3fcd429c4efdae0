import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import type { GuestImage } from '../../src/drivers/guest-images/image.ts';
import { DEFAULT_SUITE, type Suite } from '../../src/drivers/guest-images/recipe.ts';
import { imageStore } from '../../src/drivers/guest-images/store.ts';
import { qemu } from '../../src/drivers/index.ts';

/** A store of guest images that CI fills with `rdctl image build`; tests only read it. */
const STORE = resolve(process.env.RDCTL_TEST_IMAGES ?? 'node_modules/.cache/rdctl/guest-images');
const all = await imageStore(STORE).list();
/** Those of one suite. */
const images = suiteImages(process.env.RDCTL_TEST_SUITE ?? DEFAULT_SUITE);

function suiteImages(suite: string): GuestImage[] {
  return all.filter(({ source }) => source?.suite === suite);
}

/**
 * Links images into a home: those without special features, which boot fastest, and those with no features beyond `features`.
 * Without any, the home has none.
 */
export function linkImages(home: string, ...features: string[]): void {
  link(
    home,
    images.filter(({ features: special = [] }) => special.every((each) => features.includes(each))),
  );
}

/**
 * Links the newest image of a suite into a home.
 * @returns its digest.
 */
export function linkSuite(home: string, suite: Suite): string {
  const image = suiteImages(suite).find(({ features = [] }) => features.length === 0);
  if (!image)
    throw new Error(`${STORE} has no image of ${suite}; build one with \`rdctl image build --suite ${suite}\``);
  link(home, [image]);
  return image.digest;
}

function link(home: string, chosen: readonly GuestImage[]): void {
  const store = join(home, 'guest-images');
  mkdirSync(store, { recursive: true });
  for (const { directory } of chosen) symlinkSync(directory, join(store, basename(directory)));
}

/**
 * Why tests with a real guest cannot run here; undefined when they can. Reported on standard error, because a silent skip looks like
 * a pass. With `RDCTL_REQUIRE_REAL=1` it throws instead.
 * @param features features that some image must have.
 */
export async function whyNoRealGuest(...features: string[]): Promise<string | undefined> {
  const home = mkdtempSync(join(tmpdir(), 'rd-probe-'));
  linkImages(home);
  const probe = await qemu.probe({ ...process.env, RDCTL_HOME: home });
  rmSync(home, { recursive: true });
  const obstacle = probe.usable ? lack(features) : probe;
  if (obstacle === undefined) return undefined;
  const message = `tests with a real guest cannot run: ${obstacle.reason}; fix: ${obstacle.fix} (images are looked for in ${STORE})`;
  if (process.env.RDCTL_REQUIRE_REAL === '1') throw new Error(message);
  process.stderr.write(`\nSKIPPED: ${message}\n`);
  return obstacle.reason;
}

function lack(features: readonly string[]): { reason: string; fix: string } | undefined {
  const missing = features.find((each) => !images.some(({ features: special }) => special?.includes(each)));
  if (missing === undefined) return undefined;
  return { reason: `no guest image has ${missing}`, fix: 'rdctl image build --kernel generic' };
}
