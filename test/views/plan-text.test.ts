import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { planText } from '../../cli/views/plan-text.ts';
import { durationText, pathText, plainText, style, valueText } from '../../cli/views/text.ts';
import type { Change } from '../../src/plan/change.ts';
import { ENGINE_CHANGE, planWith } from '../helpers/plans.ts';

const PLAIN = style(false);

function change(rest: Partial<Change>): Change {
  return {
    path: 'images.namespace',
    action: 'update',
    severity: 'none',
    reason: 'does not affect the machine, engine or cluster',
    ...rest,
  };
}

test('a plan with everything', () => {
  const plan = planWith(
    [
      ENGINE_CHANGE,
      change({ before: 'default', after: 'k8s.io' }),
      change({ path: 'diagnostics.mutedChecks', key: 'CHECK', action: 'create', after: true }),
      change({ path: 'diagnostics.mutedChecks', key: 'a b', action: 'delete', before: false }),
      change({
        path: 'experimental.virtualMachine.proxy.password',
        before: { sensitive: true },
        after: { sensitive: true },
      }),
      change({
        path: 'images.showAll',
        before: true,
        after: false,
        blocked: { by: 'lock', message: '"images.showAll" is locked.' },
      }),
    ],
    {
      blastRadius: [
        { what: 'stops 7 containers', lost: false },
        { what: 'deletes the cluster', lost: true, consent: 'kubernetes-reset' },
      ],
      userFiles: [
        { action: 'update', file: '/home/user/.bashrc', what: 'removes /home/user/bin from PATH' },
        { action: 'delete', file: '/home/user/.docker/config.json', what: 'selects docker context default' },
      ],
      pendingRestart: ['the storage driver changed'],
      warnings: ['"kubernetes.port" has no effect here.'],
    },
  );
  expect(planText(plan, PLAIN)).toBe(`Target: rdctl at /home/user/.local/share/rdctl
Driver: simulated (SIMULATED: no real machine or engine)

  ± containerEngine.name: moby → containerd
      restart: stops moby and starts containerd
  ~ images.namespace: default → k8s.io
      stored: does not affect the machine, engine or cluster
  + diagnostics.mutedChecks[CHECK]: true
      stored: does not affect the machine, engine or cluster
  - diagnostics.mutedChecks["a b"]: false → (removed)
      stored: does not affect the machine, engine or cluster
  ~ experimental.virtualMachine.proxy.password: (sensitive) → (sensitive)
      stored: does not affect the machine, engine or cluster

Cannot be changed:
  ! images.showAll: true → false
      lock: "images.showAll" is locked.

Blast radius:
  * stops 7 containers
  * deletes the cluster (kubernetes-reset: cannot be recovered)

Your files:
  ~ /home/user/.bashrc: removes /home/user/bin from PATH
  - /home/user/.docker/config.json: selects docker context default

Restart already pending:
  * the storage driver changed

warning: "kubernetes.port" has no effect here.

6 changes, 1 blocked, 1 restart, cluster data is lost
`);
});

test('an empty plan says so', () => {
  expect(planText(planWith([]), PLAIN)).toMatch(/\n\nNothing to change\.\n$/);
});

test('a real driver is not called simulated, an estimate is marked', () => {
  const text = planText(
    planWith([], { target: { product: 'rdctl', driver: 'host', simulated: false }, basis: 'estimated' }),
    PLAIN,
  );
  expect(text).toMatch(/^Target: rdctl\nDriver: host\nBasis: {2}estimated/);
  expect(text).not.toMatch(/simulated/i);
});

test('the text is the same without color', () => {
  const plan = planWith([ENGINE_CHANGE, change({ severity: 'reset', before: 'a', after: 'b' })]);
  const coloured = planText(plan, style(true));
  expect(coloured).toContain('\u001b[');
  expect(stripVTControlCharacters(coloured)).toBe(planText(plan, PLAIN));
});

test('control characters in values, names and messages never reach the terminal', () => {
  const evil = '\u001b[2J\r\nfake line\u202e';
  const text = planText(
    planWith(
      [
        change({ key: evil, before: evil, after: [evil], reason: evil, blocked: { by: 'lock', message: evil } }),
        change({ reason: evil, after: evil }),
      ],
      {
        blastRadius: [{ what: evil, lost: false }],
        userFiles: [{ action: 'create', file: evil, what: evil }],
        warnings: [evil],
        pendingRestart: [evil],
      },
    ),
    PLAIN,
  );
  expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
  expect(text).not.toMatch(/^fake line/m);
});

describe('values', () => {
  test.each([
    ['moby', 'moby'],
    ['', '""'],
    ['true', '"true"'],
    ['19', '"19"'],
    ['two words', '"two words"'],
    [true, 'true'],
    [null, 'null'],
    [4, '4'],
    [[], '[]'],
    [['a', 'b c'], '[a, "b c"]'],
    [{}, '{}'],
    [{ key: true, 'b c': 'x' }, '{ key: true, "b c": x }'],
    [undefined, '(nothing)'],
  ])('%j is shown as %s', (value, text) => {
    expect(valueText(value)).toBe(text);
  });

  test('a map entry is named by its key', () => {
    expect(pathText({ path: 'WSL.integrations', key: 'Ubuntu' })).toBe('WSL.integrations[Ubuntu]');
  });

  test.each([
    [0, '0 ms'],
    [999, '999 ms'],
    [1000, '1.0 s'],
    [12_345, '12.3 s'],
    [125_000, '2 min 5 s'],
  ])('%d ms is %s', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });

  test('foreign text stays on its line', () => {
    expect(plainText('a\n\u001b[31mb\u2028c')).toBe('a [31mb c');
  });
});
