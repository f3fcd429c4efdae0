import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { RdError } from '../../errors.ts';
import type { Base, ServiceManager, UnitState } from './manager.ts';
import { isOurs, refuseForeign, removeOurs, replaceOurs } from './marked-files.ts';
import { systemdService, systemdSocket } from './unit-files.ts';

export interface SystemdInput extends Base {
  /** Directory of the unit files. */
  directory: string;
  /** Directory of the units of packages. */
  packages: string;
  /** Whether this is the manager of the user, not of the system. */
  user: boolean;
  /** Path of a socket whose first connection starts the service; if absent, the service starts at login or boot. */
  socket?: string;
}

/** systemd, by `systemctl`. */
export function systemd({ run: execute, name, directory, packages, user, socket }: SystemdInput): ServiceManager {
  const [serviceName, socketName] = [`${name}.service`, `${name}.socket`];
  const [service, socketUnit] = [join(directory, serviceName), join(directory, socketName)];
  const packaged = join(packages, serviceName);
  const systemctl = (...words: string[]) =>
    execute(['systemctl', ...(user ? ['--user'] : []), ...words]).catch((cause: unknown) => {
      const details = cause instanceof RdError ? cause.details : [];
      throw new RdError('ERR_IO', `systemctl ${words.join(' ')} failed`, {
        ...{ cause, details },
        advice: `Check that systemd runs here${user ? ' for this user: systemctl --user status' : ': systemctl status'}.`,
      });
    });
  const show = async (unit: string) => {
    const properties = ['FragmentPath', 'UnitFileState', 'ActiveState', 'MainPID'].map((each) => `--property=${each}`);
    return propertiesIn((await systemctl('show', ...properties, unit)).stdout);
  };

  return {
    async install(content, { start }) {
      // Fails without a manager that answers, before anything is written.
      await systemctl('daemon-reload');
      for (const path of [service, socketUnit]) await refuseForeign(path);
      // Without this, it would keep listening after its file is gone.
      if (socket === undefined && (await isOurs(socketUnit))) await systemctl('disable', '--now', socketName);
      await replaceOurs(service, systemdService(content));
      if (socket === undefined) await removeOurs(socketUnit);
      else await replaceOurs(socketUnit, systemdSocket(socket));
      await systemctl('daemon-reload');
      if (socket === undefined) {
        await systemctl('enable', ...(start ? ['--now'] : []), serviceName);
        return;
      }
      // An earlier installation or the unit of a package may have been enabled.
      await systemctl('disable', serviceName);
      // A socket cannot start beside its service.
      const isActive = (await show(serviceName)).get('ActiveState') === 'active';
      await systemctl('enable', ...(isActive ? [] : ['--now']), socketName);
    },
    async uninstall() {
      const units: string[] = [];
      if (await isOurs(socketUnit)) units.push(socketName);
      if (await isOurs(service)) units.push(serviceName);
      if (units.length === 0) return false;
      await systemctl('disable', '--now', ...units);
      for (const path of [socketUnit, service]) await removeOurs(path);
      await systemctl('daemon-reload');
      // Until this, systemd lists a unit that failed. The call fails for units that did not.
      await systemctl('reset-failed', ...units).catch(() => undefined);
      return true;
    },
    async state() {
      const installed = await isOurs(service);
      const isPackaged = existsSync(packaged);
      const none: UnitState = { unit: service, installed, enabled: false, active: false };
      const shown = await Promise.all([show(serviceName), show(socketName)]).catch((error: unknown) => {
        if (installed || isPackaged) throw error;
      });
      if (shown === undefined) return none;
      const [of, ofSocket] = shown;
      const fragment = of.get('FragmentPath') ?? '';
      if (!installed && fragment === '') return none;
      const pid = Number(of.get('MainPID') ?? 0);
      const onFirstUse = ofSocket.get('UnitFileState') === 'enabled';
      return {
        unit: installed ? service : fragment,
        from: installed ? 'install' : fragment === packaged ? 'package' : 'other',
        installed,
        ...(isPackaged && fragment !== packaged ? { packaged } : {}),
        enabled: onFirstUse || of.get('UnitFileState') === 'enabled',
        ...(onFirstUse ? { onFirstUse } : {}),
        active: of.get('ActiveState') === 'active',
        ...(pid > 0 ? { pid } : {}),
      };
    },
  };
}

function propertiesIn(text: string): ReadonlyMap<string, string> {
  return new Map(
    text.split('\n').map((line) => {
      const at = line.indexOf('=');
      return [line.slice(0, at), line.slice(at + 1)];
    }),
  );
}
