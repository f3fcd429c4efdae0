import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { engineJson } from '../helpers/engine-client.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { toolHome } from '../helpers/tool-home.ts';

// Two boots without KVM, next to other tests.
const LIMIT_MS = 1_800_000;
const MEMORY = 'virtualMachine.memoryInGB';
const CPUS = 'virtualMachine.numberCPUs';
const DISK = 'experimental.virtualMachine.diskSize';
const GIB = 2 ** 30;
/** The most that the guest kernel reserves for itself. */
const KEPT = GIB / 4;

interface Size {
  memory: number;
  cpus: number;
  disk: number;
}

interface Plan {
  changes: { path: string; severity: string; reason: string }[];
  summary: { severity: string };
  blastRadius: unknown[];
}

function profile({ memory, cpus, disk }: Size): string {
  return `apiVersion: rdctl/v1
kind: Profile
metadata: { name: sizes }
state: started
settings:
  version: 19
  containerEngine: { name: moby }
  kubernetes: { enabled: false }
  virtualMachine: { memoryInGB: ${memory}, numberCPUs: ${cpus} }
  experimental: { virtualMachine: { diskSize: ${disk}GiB } }
`;
}

const reason = await whyNoRealGuest();

describe.skipIf(reason !== undefined)('a running guest', () => {
  test(
    'changes memory, processors and disk without a restart where the plan says live, and restarts where it says so',
    async () => {
      const { home, rdctl, status } = toolHome();
      linkImages(home);
      const file = join(home, 'sizes.yaml');
      const qemuPid = () => JSON.parse(readFileSync(join(home, 'state/drivers/qemu/qemu.pid.json'), 'utf8')).pid;
      const inGuest = async (...words: string[]) => (await rdctl('shell', ...words)).out.trim();
      const plan = async (size: Size): Promise<Plan> => {
        writeFileSync(file, profile(size));
        return JSON.parse((await rdctl('plan', '-f', file, '-o', 'json')).out);
      };
      const expectNothingLeft = async (size: Size) => expect(await plan(size)).toMatchObject({ changes: [] });

      const first: Size = { memory: 2, cpus: 2, disk: 100 };
      writeFileSync(file, profile(first));
      expect(await rdctl('apply', '-f', file, '--driver', 'qemu')).toMatchObject({ exit: 0 });
      const begin = await status();
      const endpoint = begin.engine.endpoint ?? '';
      const same = { pid: qemuPid(), boot: await inGuest('cat', '/proc/sys/kernel/random/boot_id') };
      expect(same.boot).toMatch(/^[0-9a-f-]{36}$/);
      await expectNothingLeft(first);

      /** Changes the sizes, and checks that machine, guest and engine have them, without a restart. */
      const change = async (size: Size, paths: string[]) => {
        const planned = await plan(size);
        expect(planned.changes).toEqual(
          paths.map((path) =>
            expect.objectContaining({ path, severity: 'live', reason: 'applied to the running machine' }),
          ),
        );
        expect(planned).toMatchObject({ summary: { severity: 'live' }, blastRadius: [] });
        const applied = await rdctl('apply', '-f', file);
        expect(applied).toMatchObject({ exit: 0 });
        await expectNothingLeft(size);
        const found = await status();
        expect(found).toMatchObject({
          converged: true,
          machine: { spec: { memoryGiB: size.memory, cpus: size.cpus, diskBytes: size.disk * GIB } },
        });
        expect({ pid: qemuPid(), boot: await inGuest('cat', '/proc/sys/kernel/random/boot_id') }).toEqual(same);
        const kib = Number(await inGuest('sh', '-c', "sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo"));
        const info = await engineJson(endpoint, 'GET', '/info');
        for (const bytes of [kib * 1024, Number(info.MemTotal)]) {
          expect(bytes).toBeGreaterThan(size.memory * GIB - KEPT);
          expect(bytes).toBeLessThan(size.memory * GIB);
        }
        expect([Number(await inGuest('getconf', '_NPROCESSORS_ONLN')), info.NCPU]).toEqual([size.cpus, size.cpus]);
        const blocks = await inGuest('df', '--block-size=1M', '--output=size', '/var/lib/rdctl');
        // The metadata of a file system takes a few percent.
        expect(Number(blocks.split('\n').at(-1))).toBeGreaterThan(size.disk * 1024 * 0.95);
      };

      // Back at once: the guest reports its use a few seconds after a change.
      await change({ ...first, memory: 5 }, [MEMORY]);
      await change(first, [MEMORY]);
      // Without KVM, recent kernels cannot use more processors than they were booted with.
      const possible = Number((await inGuest('cat', '/sys/devices/system/cpu/possible')).split('-').at(-1)) + 1;
      const larger: Size = { ...first, cpus: Math.min(3, possible), disk: 108 };
      await change(larger, possible > 2 ? [CPUS, DISK] : [DISK]);

      const other: Size = { ...larger, cpus: possible > 2 ? 2 : 3 };
      const restart = await plan(other);
      const limits = possible > 2 ? 'the live limits are 3 to' : 'the live limits are 2';
      expect(restart.changes).toEqual([
        expect.objectContaining({ path: CPUS, severity: 'restart', reason: expect.stringContaining(limits) }),
      ]);
      writeFileSync(file, profile({ ...larger, disk: first.disk }));
      const smaller = await rdctl('plan', '-f', file);
      expect(smaller).toMatchObject({ exit: 3, err: expect.stringContaining('Cannot decrease') });
      const before = await status();
      expect(before.counters.steps).toBe(begin.counters.steps + 3);
      await inGuest('sh', '-c', 'echo kept >/var/lib/rdctl/kept && sync');

      writeFileSync(file, profile(other));
      expect(await rdctl('apply', '-f', file)).toMatchObject({ exit: 0 });
      await expectNothingLeft(other);
      const after = await status();
      expect(after).toMatchObject({
        converged: true,
        counters: { restarts: before.counters.restarts + 1 },
        machine: { spec: { memoryGiB: other.memory, cpus: other.cpus, diskBytes: other.disk * GIB } },
      });
      expect(qemuPid()).not.toBe(same.pid);
      expect(await inGuest('cat', '/proc/sys/kernel/random/boot_id')).not.toBe(same.boot);
      expect(await inGuest('getconf', '_NPROCESSORS_ONLN')).toBe(String(other.cpus));
      expect(await inGuest('cat', '/var/lib/rdctl/kept')).toBe('kept');

      expect(await rdctl('shutdown')).toMatchObject({ exit: 0 });
    },
    LIMIT_MS,
  );
});
