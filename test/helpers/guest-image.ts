import { existsSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { qemu } from '../../src/drivers/index.ts';

/** A store of guest images that CI fills once with `rdctl image build`; tests only look into it. */
const IMAGES = resolve(process.env.RDCTL_TEST_IMAGES ?? 'node_modules/.cache/rdctl/guest-images');

/** Gives a home those images; without any, the home has none. */
export function linkImages(home: string): void {
  if (existsSync(IMAGES)) symlinkSync(IMAGES, join(home, 'guest-images'));
}

/**
 * Why tests with a real guest cannot run here; undefined when they can. Says so on standard error, because a silent skip looks like a
 * pass. With `RDCTL_REQUIRE_REAL=1` it throws instead.
 */
export async function whyNoRealGuest(): Promise<string | undefined> {
  const home = mkdtempSync(join(tmpdir(), 'rd-probe-'));
  linkImages(home);
  const probe = await qemu.probe({ ...process.env, RDCTL_HOME: home });
  if (probe.usable) return undefined;
  const message = `tests with a real guest cannot run: ${probe.reason}; fix: ${probe.fix} (images are looked for in ${IMAGES})`;
  if (process.env.RDCTL_REQUIRE_REAL === '1') throw new Error(message);
  process.stderr.write(`\nSKIPPED: ${message}\n`);
  return probe.reason;
}
