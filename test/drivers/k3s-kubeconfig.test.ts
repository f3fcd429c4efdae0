import { expect, test } from 'vitest';
import { readCredentials } from '../../src/drivers/clusters/k3s/api.ts';
import { HOSTILE_YAML } from '../helpers/hostile-yaml.ts';

/** Anyone who becomes root in the guest can write this file, which is read while the cluster runs. Some of these take parsers minutes. */
test.each(Object.entries(HOSTILE_YAML))('a kubeconfig of a machine with %s is rejected', (_what, text) => {
  expect(readCredentials(text)).toBeUndefined();
});
