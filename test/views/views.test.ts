import { describe, expect, test } from 'vitest';
import { statusText } from '../../cli/views/status-text.ts';
import { style } from '../../cli/views/text.ts';
import { viewFor } from '../../cli/views/view.ts';
import type { SharedDirectories, SharedDirectory } from '../../src/drivers/driver.ts';
import type { Phase } from '../../src/reconcile/contract.ts';
import type { StatusDocument } from '../../src/reconcile/status-document.ts';
import { MACHINE } from '../contract/driver-suite.ts';
import { fakeIo } from '../helpers/cli.ts';
import { ENGINE_CHANGE, planWith, statusWith } from '../helpers/plans.ts';

const AT = '2026-01-02T03:04:05.000Z';
const STOP: Phase = { name: 'engine stop', startedAt: AT, ms: 1500, outcome: 'done' };
const START: Phase = { name: 'engine start', startedAt: '2026-01-02T03:04:06.500Z' };

describe('progress', () => {
  test('without a terminal: one line per finished phase', () => {
    const io = fakeIo();
    const view = viewFor(undefined, io);
    view.event({ type: 'progress', status: statusWith({ phases: [STOP, START] }) });
    view.event({
      type: 'progress',
      status: statusWith({ phases: [STOP, { ...START, ms: 20, outcome: 'failed', reason: 'no \u001b[2Jroom' }] }),
    });
    view.endEvents();
    expect(io.text.err).toBe('  engine stop: done (1.5 s)\n  engine start: failed (20 ms): no  [2Jroom\n');
  });

  test.each([true, false])('a phase is reported once, on a terminal or not: %s', (terminal) => {
    const io = fakeIo({ progress: terminal });
    const view = viewFor(undefined, io);
    const late: Phase = { ...START, ms: 20, outcome: 'done' };
    view.event({ type: 'progress', status: statusWith({ phases: [STOP, START], converged: false }) });
    const status = statusWith({ phases: [STOP, late] });
    view.event({ type: 'progress', status });
    view.endEvents();
    view.applied({
      outcome: 'applied',
      plan: planWith([ENGINE_CHANGE]),
      skipped: [],
      staysStopped: false,
      writes: 1,
      status,
      ms: 1600,
    });
    const told = `${io.text.err.slice(io.text.err.lastIndexOf('\r') + 1)}${io.text.out}`;
    expect(told.match(/engine stop/g)).toHaveLength(1);
    expect(told.match(/engine start/g)).toHaveLength(1);
  });

  test('on a terminal: one line that is cleared', () => {
    const io = fakeIo({ progress: true });
    const view = viewFor(undefined, io);
    view.event({ type: 'progress', status: statusWith({ phases: [{ name: 'engine stop', startedAt: AT }] }) });
    view.event({ type: 'progress', status: statusWith({ phases: [STOP, START] }) });
    view.event({ type: 'progress', status: statusWith({ phases: [STOP, { ...START, ms: 20, outcome: 'done' }] }) });
    view.endEvents();
    view.endEvents();
    expect(io.text.err).toBe('  engine stop …\r\u001b[2K  engine start …\r\u001b[2K');
  });

  test('on a terminal finished phases stay visible after a failure', () => {
    const io = fakeIo({ progress: true });
    const view = viewFor(undefined, io);
    const phases: Phase[] = [STOP, { ...START, ms: 20, outcome: 'failed' }];
    view.event({ type: 'progress', status: statusWith({ phases: [STOP, START], converged: false }) });
    view.event({ type: 'progress', status: statusWith({ phases, converged: false, backendState: 'ERROR' }) });
    view.endEvents();
    view.endEvents();
    expect(io.text.err).toBe('  engine start …\r\u001b[2K  engine stop   1.5 s\n  engine start  20 ms, failed\n');
  });

  test('with -o json: stdout has one document, stderr nothing', () => {
    const io = fakeIo();
    const view = viewFor('json', io);
    view.event({ type: 'planned', plan: planWith([ENGINE_CHANGE]) });
    view.event({ type: 'progress', status: statusWith({ phases: [STOP] }) });
    view.endEvents();
    const outcome = {
      outcome: 'applied' as const,
      plan: planWith([ENGINE_CHANGE]),
      skipped: [],
      staysStopped: false,
      writes: 1,
      status: statusWith({ phases: [STOP] }),
      ms: 1600,
    };
    view.applied(outcome);
    expect(io.text.err).toBe('');
    expect(JSON.parse(io.text.out)).toMatchObject({
      kind: 'ApplyReport',
      writes: 1,
      ms: 1600,
      phases: [{ name: 'engine stop' }],
    });
  });
});

describe('the end of an apply', () => {
  const base = { plan: planWith([ENGINE_CHANGE]), skipped: [], staysStopped: false, writes: 1, ms: 1600 };

  test.each([
    [
      'applied',
      { ...base, outcome: 'applied' as const, status: statusWith({ phases: [STOP] }) },
      '  engine stop  1.5 s\nConverged in 1.6 s.\nEndpoint: unix:///run/docker.sock\n',
    ],
    [
      'unchanged',
      { ...base, outcome: 'unchanged' as const, writes: 0, status: statusWith() },
      'Nothing to change.\nEndpoint: unix:///run/docker.sock\n',
    ],
    [
      'sent',
      { ...base, outcome: 'sent' as const, status: statusWith() },
      'Sent; not waiting. Follow it with `rdctl status`.\n',
    ],
  ])('%s', (_name, outcome, text) => {
    const io = fakeIo();
    viewFor('text', io).applied(outcome);
    expect(io.text).toEqual({ out: text, err: '' });
  });
});

describe('status', () => {
  test.each([
    [{ cluster: { state: 'absent' } }, 'Kubernetes is disabled'],
    [{ cluster: { state: 'stopped', installedVersion: '1.32.1' } }, 'Kubernetes is disabled'],
    [{ cluster: { state: 'unsupported' } }, 'this driver has no Kubernetes'],
  ] as const)('DISABLED is explained: %j', (part, why) => {
    const text = statusText(statusWith({ ...part, backendState: 'DISABLED' }), style(false));
    expect(text).toContain(
      `\nState     DISABLED (the engine runs, ${why}), converged (desired: started, generation 3)\n`,
    );
  });

  test('shows what a machine lacks', () => {
    const machine = { state: 'on', spec: MACHINE, flaw: 'it is \u001b[2Jsmall' } as const;
    const text = statusText(statusWith({ machine }), style(false));
    expect(text).toContain('\n! The machine is only partly configured: it is  [2Jsmall\n');
  });

  test('shows the accelerator, and how to get KVM', () => {
    const started = { how: 'boot', phases: [{ name: 'boot', ms: 2_000 }] } as const;
    const kvm = { state: 'on', spec: MACHINE, accelerator: 'kvm', started } as const;
    const text = statusText(statusWith({ machine: kvm }), style(false));
    expect(text).toContain('\nMachine   on with KVM, booted in 2.0 s\n');
    expect(text).not.toContain('emulated');
    const tcg = { state: 'on', spec: MACHINE, accelerator: 'tcg', emulatedBecause: 'there is \u001b[2Jnone' } as const;
    const slow = statusText(statusWith({ machine: tcg }), style(false));
    expect(slow).toContain('\nMachine   on with TCG\n');
    expect(slow).toContain(
      '\n- The machine is emulated (TCG), which is several times slower than hardware virtualization: there is  [2Jnone\n',
    );
  });

  test('DISABLED of another application is explained the same way', () => {
    const other = { settingsVersion: 16, cluster: { state: 'unknown' }, backendState: 'DISABLED' } as const;
    const text = statusText(statusWith(other), style(false));
    expect(text).toContain('\nState        DISABLED (the engine runs, Kubernetes is disabled)\n');
  });

  test('names what is not converged', () => {
    const text = statusText(
      statusWith({
        converged: false,
        backendState: 'STARTING',
        conditions: [
          {
            type: 'MachineReady',
            status: 'True',
            reason: 'On',
            concern: 'none',
            message: 'fine',
            observedGeneration: 3,
            lastTransitionTime: AT,
          },
          {
            type: 'EngineReady',
            status: 'Unknown',
            reason: 'Starting',
            concern: 'patience',
            message: 'moby is starting',
            observedGeneration: 3,
            lastTransitionTime: AT,
          },
        ],
        cluster: { state: 'unsupported' },
        engine: { name: 'moby', state: 'running', workload: { runningContainers: 1, images: 2 } },
        notices: ['A file was set aside.'],
        phases: [START],
      }),
      style(false),
    );
    expect(text).toContain('State    STARTING, not converged yet (desired: started, generation 3)\n');
    expect(text).toContain('Engine   moby, running (1 running container, 2 images)\n');
    expect(text).toContain('Cluster  none with this driver\n');
    expect(text).toContain('~ EngineReady: moby is starting (Starting)\n');
    expect(text).toContain('  engine start  running\n');
    expect(text).toContain('notice: A file was set aside.\n');
    expect(text).not.toContain('MachineReady');
  });

  test('what was not observed is unknown, and earlier observations are not facts', () => {
    const about = { status: 'Unknown' as const, message: 'm', observedGeneration: 3, lastTransitionTime: AT };
    const failed = { ...about, reason: 'ObservationFailed', concern: 'attention' as const };
    const unknown = { state: 'unknown' } as const;
    const conditions = [
      { ...failed, type: 'MachineReady' as const },
      { ...failed, type: 'EngineReady' as const },
    ];
    const never = statusWith({ machine: unknown, engine: { name: 'moby', ...unknown }, cluster: unknown, conditions });
    expect(statusText(never, style(false))).toMatch(
      /^Machine {2}unknown\nEngine {3}moby, unknown\nCluster {2}unknown$/m,
    );
    const before = statusWith({ machine: { state: 'off' }, engine: { name: 'moby', state: 'stopped' }, conditions });
    expect(statusText(before, style(false))).toMatch(
      /^Machine {2}off, last known\nEngine {3}moby, stopped, last known\nCluster {2}not installed$/m,
    );
  });

  test('shows an operation on the backend data while it runs', () => {
    const maintenance = 'Creating snapshot "a\u001b[2J": copying 1.2 GiB, 40 %.';
    const text = statusText(statusWith({ maintenance }), style(false));
    expect(text).toMatch(/^Maintenance {2,}Creating snapshot .*copying 1\.2 GiB, 40 %\.$/m);
    expect(text).not.toContain('\u001b');
    expect(statusText(statusWith({}), style(false))).not.toContain('Maintenance');
  });

  test('shows how a machine came up, and what took time', () => {
    const phases = [
      { name: 'preparation', ms: 40 },
      { name: 'state\u001b[2J', ms: 1_260 },
      { name: 'connection', ms: 700 },
    ];
    const row = (how: 'boot' | 'resume', some: typeof phases) => {
      const machine = { state: 'on' as const, spec: MACHINE, started: { how, phases: some } };
      return /^Machine +(.*)$/m.exec(statusText(statusWith({ machine }), style(false)))?.[1];
    };
    expect(row('resume', phases)).toMatch(/^on, resumed in 2\.0 s \(state.* 1\.3 s, connection 700 ms\)$/);
    expect(row('resume', phases)).not.toContain('\u001b');
    expect(row('boot', [{ name: 'boot', ms: 61_000 }])).toBe('on, booted in 1 min 1 s');
  });

  test('reports directories that are not mounted in the machine, and stays silent about others', () => {
    const text = (shared: SharedDirectories) =>
      statusText(statusWith({ machine: { state: 'on', spec: MACHINE, shared } }), style(false));
    const missing = 'HOME is /etc, and the\u001b[2J guest has that for itself';
    const mounts: SharedDirectory[] = [
      { path: '/etc', missing },
      { path: '/opt/a\u001b[2J', missing: 'it is not a directory' },
      { path: '/opt/b', mode: 'none' },
    ];
    const both = text({ missing, mounts });
    expect(both).toMatch(/^! The home directory is not shared with the machine: HOME is \/etc, and the.* itself$/m);
    expect(both).toMatch(/^! \/opt\/a.* is not shared with the machine: it is not a directory$/m);
    expect(both).not.toContain('\u001b');
    expect(both).not.toContain('/opt/b');
    const home: SharedDirectory = { path: '/home/a', mode: 'writable', by: '9p' };
    expect(text({ path: '/home/a', by: '9p', mounts: [home] })).not.toContain('shared');
    expect(text({ missing: 'x', mounts: [{ path: '/home/a', mode: 'none' }] })).not.toContain('shared');
  });

  test('a cluster of unknown version', () => {
    const text = statusText(statusWith({ cluster: { state: 'stopped', installedVersion: '' } }), style(false));
    expect(text).toMatch(/^Cluster +stopped, version unknown$/m);
  });

  test('shows where machine ports can be reached, or why they cannot', () => {
    const ports = Array.from({ length: 22 }, (_, index) => ({
      protocol: 'tcp' as const,
      port: 8000 + index,
      state: 'forwarded' as const,
      addresses: ['127.0.0.1'],
    }));
    const failed = {
      protocol: 'tcp' as const,
      port: 80,
      state: 'failed' as const,
      reason: 'another program has\u001b[31m it',
    };
    const text = statusText(statusWith({ ports: [failed, ...ports] }), style(false));
    expect(text).toMatch(/^Ports {5}8000, .*, 8019 and 2 more of the machine, at 127\.0\.0\.1$/m);
    expect(text).toMatch(/^! Port 80 of the machine is not forwarded: another program has.* it$/m);
    expect(text).not.toContain('\u001b');
    const both = { protocol: 'tcp', port: 80, state: 'forwarded', addresses: ['127.0.0.1', '::1'] } as const;
    const udp = { protocol: 'udp', port: 53, state: 'forwarded', addresses: ['127.0.0.1'] } as const;
    const portsOf = (...of: NonNullable<StatusDocument['ports']>) =>
      statusText(statusWith({ ports: of }), style(false));
    expect(portsOf(both)).toMatch(/^Ports {5}80 of the machine, at 127\.0\.0\.1 and \[::1\]$/m);
    expect(portsOf(udp)).toMatch(/^Ports {5}53\/udp of the machine, at 127\.0\.0\.1$/m);
    expect(portsOf(both, udp)).toMatch(/^Ports {5}80, 53\/udp of the machine, at 127\.0\.0\.1, TCP also at \[::1\]$/m);
    const web = { ...both, claimedBy: 'kube-system/traefik:web' };
    const all = { ...both, port: 8080, addresses: ['0.0.0.0', '::'] };
    expect(portsOf(web, all, { ...udp, port: 54, addresses: ['0.0.0.0'] })).toMatch(
      /^Ports {5}80 \(kube-system\/traefik:web\) of the machine, at 127\.0\.0\.1 and \[::1\]; 8080, 54\/udp of the machine, on all addresses of this computer$/m,
    );
    expect(portsOf(all)).toMatch(/^Ports {5}8080 of the machine, on all addresses of this computer$/m);
    const claimed = statusText(statusWith({ ports: [{ ...failed, claimedBy: 'container web' }] }), style(false));
    expect(claimed).toMatch(/^! Port 80 \(container web\) of the machine is not forwarded: another program/m);
    expect(statusText(statusWith({ ports: [] }), style(false))).not.toMatch(/port/i);
  });

  test('a component in its desired state shows no alarm when another fails', () => {
    const about = { status: 'False' as const, message: 'm', observedGeneration: 3, lastTransitionTime: AT };
    const text = statusText(
      statusWith({
        converged: false,
        backendState: 'ERROR',
        conditions: [
          { ...about, type: 'EngineReady', reason: 'StepFailed', concern: 'attention' },
          { ...about, message: 'off', type: 'ClusterReady', reason: 'SwitchedOff', concern: 'none' },
          { ...about, type: 'Converged', reason: 'Failed', concern: 'attention' },
        ],
      }),
      style(false),
    );
    expect(text).toContain('! EngineReady: m (StepFailed)\n- ClusterReady: off (SwitchedOff)\n');
    expect(text).not.toContain('Converged:');
  });
});

test('the status says what became of the last change, while that is in force', () => {
  const transaction = { generation: 3, onFailure: 'return', to: 2, reason: 'It ended.' } as const;
  const shown = (generation: number, more: Partial<NonNullable<StatusDocument['transaction']>>) =>
    statusText(statusWith({ generation, transaction: { ...transaction, state: 'done', ...more } }), style(false))
      .split('\n')
      .find((line) => line.startsWith('Change'));
  expect(shown(4, { state: 'returned', returnGeneration: 4 })).toContain('was undone by generation 4: It ended.');
  expect(shown(3, { state: 'kept', keptBecause: 'the disk is full' })).toContain('is kept, because the disk is full');
  expect(shown(3, { state: 'returning', unwritten: 'no space left' })).toContain('not written yet: no space left');
  expect(shown(5, { state: 'returned', returnGeneration: 4 })).toBeUndefined();
  expect(shown(3, { state: 'done' })).toBeUndefined();
});
