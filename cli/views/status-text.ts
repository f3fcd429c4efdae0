import type { Condition, ConditionType, Phase } from '../../src/reconcile/contract.ts';
import type { MachineStart, StatusDocument } from '../../src/reconcile/status-document.ts';
import { keptSummary } from './kept-text.ts';
import { count, durationText, paragraphs, plainText, type Style, tableLines } from './text.ts';

/** Maximum ports shown; a container can publish hundreds. */
const MAX_PORTS = 20;

/** Formats the status: the target, the state, each part, and the missing ones. */
export function statusText(status: StatusDocument, paint: Style): string {
  if (status.settingsVersion !== undefined) return foreignText(status, paint);
  const { driver, engine, maintenance, policies } = status;
  const rows: [string, string | undefined][] = [
    ['Service', `${status.product} ${status.version}, pid ${status.pid}, ${status.home}`],
    ['Driver', driver.simulated ? paint.warn(`${driver.name} (SIMULATED: no real machine or engine)`) : driver.name],
    ['State', stateText(status, paint)],
    ['Maintenance', maintenance && plainText(maintenance)],
    ['Apply', applyText(status)],
    ['Change', transactionText(status)],
    ['Kept', keptSummary(status.kept)],
    ['Machine', seenText(status, 'MachineReady', machineText(status))],
    ['Engine', seenText(status, 'EngineReady', engineText(engine))],
    ['Endpoint', engine.endpoint && plainText(engine.endpoint)],
    ['Cluster', seenText(status, 'ClusterReady', clusterText(status))],
    ['Ports', portsText(status)],
    ['Locked by', policies?.lockedBy && plainText(policies.lockedBy)],
  ];
  const known = rows.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  return paragraphs([
    tableLines(known).join('\n'),
    notableConditions(status.conditions)
      .map((condition) => conditionText(condition, paint))
      .join('\n'),
    missingDirectories(status, paint),
    flawText(status, paint),
    emulationText(status),
    portFailures(status, paint),
    phasesText(status.phases),
    integrationText(status, paint),
    status.notices.map((notice) => `${paint.warn('notice:')} ${plainText(notice)}`).join('\n'),
  ]);
}

/** Describes an apply that is running, or that failed while unattended. */
function applyText({ apply }: StatusDocument): string | undefined {
  if (apply?.state === 'running') {
    const step = apply.steps.at(-1);
    return step ? `${step.what} ${plainText(step.name)} …` : 'waiting for the backend …';
  }
  return apply?.error && `failed: ${plainText([apply.error.message, ...apply.error.details].join(' '))}`;
}

/** Describes the fate of the last apply, while its result is in force. */
function transactionText({ transaction, generation: now }: StatusDocument): string | undefined {
  if (!transaction) return undefined;
  const { generation, state, reason = '', keptBecause, unwritten, to, returnGeneration } = transaction;
  const failed = `generation ${generation} failed and`;
  const why = plainText(reason);
  switch (state) {
    case 'proving':
      return `generation ${generation} is in force, not proven yet`;
    case 'returning': {
      const tried = unwritten === undefined ? '' : ` The return is not written yet: ${plainText(unwritten)}.`;
      return `${failed} is being undone, back to generation ${to}: ${why}${tried}`;
    }
    case 'returned':
      return now === returnGeneration ? `${failed} was undone by generation ${returnGeneration}: ${why}` : undefined;
    case 'failed':
      return now === returnGeneration
        ? `${failed} was undone by generation ${returnGeneration}, which failed as well: ${why}`
        : undefined;
    case 'kept':
      return now === generation ? `${failed} is kept, because ${plainText(keptBecause ?? '')}` : undefined;
    default:
      return undefined;
  }
}

/** Formats the status of another application, which reports less. */
function foreignText(status: StatusDocument, paint: Style): string {
  const { product, version, settingsVersion, home, engine, conditions } = status;
  const rows = [
    `Application  ${product} (version ${version}, settings version ${settingsVersion}), ${home}`,
    `State        ${status.backendState === 'ERROR' ? paint.bad(status.backendState) : stateWord(status)}`,
    `Engine       ${engine.name}, according to its settings`,
    ...notableConditions(conditions).map((condition) => conditionText(condition, paint)),
  ];
  return `${rows.join('\n')}\n`;
}

function stateText(status: StatusDocument, paint: Style): string {
  const desired = `desired: ${status.power}, generation ${status.generation}`;
  if (status.converged) return `${stateWord(status)}, ${paint.good('converged')} (${desired})`;
  const word = status.backendState === 'ERROR' ? paint.bad('not converged') : paint.warn('not converged yet');
  return `${stateWord(status)}, ${word} (${desired})`;
}

/** Returns the state constant that scripts use, with an explanation if needed. */
function stateWord({ backendState, cluster }: StatusDocument): string {
  if (backendState !== 'DISABLED') return backendState;
  const why = cluster.state === 'unsupported' ? 'this driver has no Kubernetes' : 'Kubernetes is disabled';
  return `${backendState} (the engine runs, ${why})`;
}

/** Marks a value from an earlier observation as such. */
function seenText({ conditions }: StatusDocument, type: ConditionType, text: string): string {
  const stale = conditions.some((condition) => condition.type === type && condition.reason === 'ObservationFailed');
  return stale && !text.endsWith('unknown') ? `${text}, last known` : text;
}

function machineText({ machine }: StatusDocument): string {
  if (machine.state === 'broken') return `broken: ${plainText(machine.message)}`;
  if (machine.state !== 'on') return machine.state;
  const by = machine.accelerator === undefined ? '' : ` with ${machine.accelerator.toUpperCase()}`;
  if (machine.paused) {
    return `on${by}, paused after ${machine.spec.pauseAfterMinutes} min without use; the next connection wakes it`;
  }
  return `on${by}${machine.started ? `, ${startText(machine.started)}` : ''}`;
}

/** Formats the phases of a start; those below a tenth of a second are omitted. */
function startText({ how, phases }: MachineStart): string {
  const total = phases.reduce((sum, { ms }) => sum + ms, 0);
  const parts = phases.filter(({ ms }) => ms >= 100).map(({ name, ms }) => `${plainText(name)} ${durationText(ms)}`);
  const details = parts.length > 1 ? ` (${parts.join(', ')})` : '';
  return `${how === 'boot' ? 'booted' : 'resumed'} in ${durationText(total)}${details}`;
}

function engineText(engine: StatusDocument['engine']): string {
  const version = engine.version ? ` ${plainText(engine.version)}` : '';
  const running = engine.workload?.runningContainers;
  const images = engine.workload?.images;
  const parts = [
    ...(running === undefined ? [] : [count(running, 'running container')]),
    ...(images === undefined ? [] : [count(images, 'image')]),
  ];
  return `${engine.name}${version}, ${engine.state}${parts.length === 0 ? '' : ` (${parts.join(', ')})`}`;
}

function clusterText({ cluster }: StatusDocument): string {
  if (cluster.state === 'unsupported') return 'none with this driver';
  if (cluster.state === 'unknown') return 'unknown';
  if (cluster.state === 'absent') return 'not installed';
  const version = `version ${plainText(cluster.installedVersion || 'unknown')}`;
  if (cluster.state === 'running') return `${cluster.ready ? 'ready' : 'running, not ready yet'}, ${version}`;
  return `${cluster.state}, ${version}`;
}

/** Warns about bind mounts of missing directories, which appear empty in the machine. */
function missingDirectories({ machine }: StatusDocument, paint: Style): string {
  if (machine.state !== 'on' || !machine.shared) return '';
  const lines = machine.shared.mounts.flatMap((directory, index) => {
    if (!('missing' in directory)) return [];
    const name = index === 0 ? 'The home directory' : plainText(directory.path);
    return `${paint.warn('!')} ${name} is not shared with the machine: ${plainText(directory.missing)}`;
  });
  return lines.join('\n');
}

function flawText({ machine }: StatusDocument, paint: Style): string {
  if (machine.state !== 'on' || machine.flaw === undefined) return '';
  return `${paint.warn('!')} The machine is only partly configured: ${plainText(machine.flaw)}`;
}

/** Explains how to get KVM: without it the machine converges but is slow. */
function emulationText({ machine }: StatusDocument): string {
  if (machine.state !== 'on' || machine.accelerator !== 'tcg') return '';
  const why = machine.emulatedBecause === undefined ? '' : `: ${plainText(machine.emulatedBecause)}`;
  return `- The machine is emulated (TCG), which is several times slower than hardware virtualization${why}`;
}

/** Lists the host ports forwarded into the machine. */
function portsText({ ports = [] }: StatusDocument): string | undefined {
  const open = ports.filter(({ state }) => state === 'forwarded');
  const isPublic = ({ addresses = [] }: ShownPort) => addresses.includes('0.0.0.0');
  const local = open.filter((each) => !isPublic(each));
  const exposed = open.filter(isPublic);
  const tcp = local.filter(({ protocol }) => protocol !== 'udp');
  const both = tcp.length > 0 && tcp.every(({ addresses = [] }) => addresses.includes('::1'));
  const ipv6 = tcp.length === local.length ? ' and [::1]' : ', TCP also at [::1]';
  const parts = [
    ...(local.length === 0 ? [] : [`${portList(local)} of the machine, at 127.0.0.1${both ? ipv6 : ''}`]),
    ...(exposed.length === 0 ? [] : [`${portList(exposed)} of the machine, on all addresses of this computer`]),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

type ShownPort = NonNullable<StatusDocument['ports']>[number];

function portList(ports: readonly ShownPort[]): string {
  const more = ports.length > MAX_PORTS ? ` and ${ports.length - MAX_PORTS} more` : '';
  return `${ports.slice(0, MAX_PORTS).map(portText).join(', ')}${more}`;
}

/** Formats a port: `8080`, `53/udp`, `80 (kube-system/traefik:web)`. */
function portText({ port, protocol, claimedBy }: ShownPort): string {
  const text = protocol === 'udp' ? `${port}/udp` : String(port);
  return claimedBy === undefined ? text : `${text} (${plainText(claimedBy)})`;
}

function portFailures({ ports = [] }: StatusDocument, paint: Style): string {
  return ports
    .filter(({ state }) => state === 'failed')
    .map(
      (each) =>
        `${paint.warn('!')} Port ${portText(each)} of the machine is not forwarded: ${plainText(each.reason ?? '')}`,
    )
    .join('\n');
}

/** Lists user files that need attention; those in sync are omitted. */
function integrationText({ hostIntegration }: StatusDocument, paint: Style): string {
  const { offBecause, files = [] } = hostIntegration ?? {};
  if (offBecause !== undefined) return `- User files are not managed: ${plainText(offBecause)}.`;
  return files
    .filter(({ state }) => state === 'left' || state === 'failed')
    .map(({ file, state, message = '' }) => {
      const mark = state === 'failed' ? paint.warn('!') : '-';
      return `${mark} ${plainText(file)} was not changed: ${plainText(message)}`;
    })
    .join('\n');
}

/** Returns the conditions that are not true, each message once: the summary often repeats the failing part. */
function notableConditions(conditions: readonly Condition[]): Condition[] {
  const open = conditions.filter((condition) => condition.status !== 'True');
  return open.filter(
    ({ type, message }) => type !== 'Converged' || !open.some((part) => part.type !== type && part.message === message),
  );
}

/** Formats a condition, marked `-` if intended, `~` in progress, `!` wrong. */
function conditionText(condition: Condition, paint: Style): string {
  const marks = { none: '-', patience: '~', attention: paint.warn('!') };
  return `${marks[condition.concern]} ${condition.type}: ${plainText(condition.message || condition.reason)} (${condition.reason})`;
}

/** Formats one line per finished or running phase, durations aligned. */
export function phasesText(phases: readonly Phase[]): string {
  const rows = phases.map((phase) => {
    const took = phase.ms === undefined ? 'running' : durationText(phase.ms);
    return [`  ${phase.name}`, `${took}${phase.outcome === 'failed' ? `, failed${why(phase)}` : ''}`];
  });
  return tableLines(rows).join('\n');
}

/** Returns `: reason`, if there is one. */
export function why({ reason }: Phase): string {
  return reason === undefined ? '' : `: ${plainText(reason)}`;
}
