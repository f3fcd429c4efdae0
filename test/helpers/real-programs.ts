import { readFileSync } from 'node:fs';
import { host } from '../../src/drivers/index.ts';

/**
 * Why tests with real engines cannot run here; undefined when they can. Reported on standard error, because a silent skip looks
 * like a pass. With `RDCTL_REQUIRE_REAL=1` it throws instead.
 */
export async function whyNoRealEngine(): Promise<string | undefined> {
  const reason = await reasonAgainst();
  if (reason === undefined) return undefined;
  const message = `tests with real engines cannot run: ${reason}`;
  if (process.env.RDCTL_REQUIRE_REAL === '1') throw new Error(message);
  process.stderr.write(`\nSKIPPED: ${message}\n`);
  return reason;
}

async function reasonAgainst(): Promise<string | undefined> {
  const probe = await host.probe(process.env);
  if (!probe.usable) return `${probe.reason}; fix: ${probe.fix}`;
  try {
    // The test containers have no libraries, so a dynamically linked program would not start.
    const program = readFileSync('/bin/busybox');
    return program.includes('/ld-linux') ? 'busybox is not static; fix: apt-get install busybox-static' : undefined;
  } catch {
    return 'there is no busybox; fix: apt-get install --no-install-recommends busybox-static';
  }
}
