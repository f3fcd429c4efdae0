import { expect, test } from 'vitest';
import { slowness } from '../../src/drivers/machines/qemu/slowness.ts';

const phases = (...times: number[]) => times.map((ms, at) => ({ name: `phase ${at}`, ms }));

test.each([
  { what: 'nothing is known', started: undefined, times: 1 },
  { what: 'hardware virtualization', started: { how: 'boot', phases: phases(4_000) }, times: 1 },
  { what: 'the usual boot', started: { how: 'boot', phases: phases(19_000, 1_000) }, times: 1 },
  { what: 'a boot that took twice as long', started: { how: 'boot', phases: phases(30_000, 10_000) }, times: 2 },
  { what: 'a resume that took twice as long', started: { how: 'resume', phases: phases(2_000, 4_000) }, times: 2 },
  { what: 'a boot that took minutes', started: { how: 'boot', phases: phases(115_000) }, times: 4 },
  {
    what: 'a usual boot after a resume that failed',
    started: {
      how: 'boot',
      phases: [
        { name: 'root disk', ms: 60_000 },
        { name: 'boot', ms: 18_000 },
        { name: 'network', ms: 2_000 },
      ],
    },
    times: 1,
  },
  { what: 'a start without phases', started: { how: 'boot', phases: [] }, times: 1 },
] as const)('after $what, limits are $times times as long', ({ started, times }) => {
  expect(slowness(started)).toBe(times);
});
