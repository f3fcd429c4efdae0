import { expect, test } from 'vitest';
import { hasMountedFiles } from '../../src/os/container.ts';

const ROOT = '733 610 0:58 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w';

test.each([
  ['docker', '746 733 254:1 /docker/containers/0f/hosts /etc/hosts rw,relatime - ext4 /dev/vda1 rw', true],
  ['a pod', '900 733 0:25 /resolv.conf /etc/resolv.conf rw,nosuid - tmpfs tmpfs rw', true],
  ['a machine with the disk of an image', '25 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw', false],
  ['a mount below such a name', '25 1 0:30 / /etc/hosts.d rw - tmpfs tmpfs rw', false],
  ['a mount from such a name', '25 1 254:1 /etc/hosts /srv/hosts rw - ext4 /dev/vda1 rw', false],
])('%s', (_, line, expected) => {
  expect(hasMountedFiles(`${ROOT}\n${line}\n`)).toBe(expected);
});

test('no list of mounts', () => {
  expect(hasMountedFiles('')).toBe(false);
});
