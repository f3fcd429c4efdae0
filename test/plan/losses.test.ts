import { expect, test } from 'vitest';
import type { Change } from '../../src/plan/change.ts';
import { LOSSES, lossesOf, missingConsent } from '../../src/plan/losses.ts';
import { ENGINE_CHANGE, planWith } from '../helpers/plans.ts';

const RESET: Change = { ...ENGINE_CHANGE, path: 'kubernetes.version', severity: 'reset' };

test('a plan needs one consent for each kind of loss', () => {
  const cluster = { what: 'deletes the cluster', lost: true, consent: 'kubernetes-reset' } as const;
  const machine = { what: 'deletes the machine', lost: true, consent: 'machine-reset' } as const;
  const stops = { what: 'stops 2 containers', lost: false } as const;
  expect(lossesOf(planWith([ENGINE_CHANGE], { blastRadius: [stops] }))).toEqual([]);
  expect(lossesOf(planWith([RESET], { blastRadius: [stops, cluster, cluster, machine] }))).toEqual(LOSSES);
  // A service that does not list what a reset deletes.
  expect(lossesOf(planWith([RESET]))).toEqual(['kubernetes-reset']);
});

test('what was allowed by name does not allow the rest', () => {
  expect(missingConsent(LOSSES, 'all')).toEqual([]);
  expect(missingConsent(LOSSES, ['kubernetes-reset'])).toEqual(['machine-reset']);
  expect(missingConsent([], [])).toEqual([]);
});
