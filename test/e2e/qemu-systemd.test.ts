import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { debianPackageFile } from '../helpers/debian-package.ts';
import { linkImages, whyNoRealGuest } from '../helpers/guest-image.ts';
import { prepareMachine } from '../helpers/prepared-machine.ts';
import { toolHome } from '../helpers/tool-home.ts';

// One resume without KVM, next to other tests.
const LIMIT_MS = 1_800_000;

const reason = await whyNoRealGuest();
const debianPackage = debianPackageFile();

/** `user@.service` gets it from libpam-systemd, which a guest has not. */
const RUNTIME_DIRECTORY = '[Service]\\nEnvironment=XDG_RUNTIME_DIR=/run/user/%%i\\n';

/** Shell functions for both users. A service is ready when it has written its connection file. */
const FUNCTIONS = `set -eu
settled() { left=600; until "$@"; do left=$((left - 1)); [ "$left" -gt 0 ]; sleep 0.1; done; }
ready() { settled test -e "$HOME/.local/share/rdctl/app-engine.json"; }
exit_of() { code=0; "$@" >/dev/null 2>&1 || code=$?; echo "$code"; }
`;

/** Everything that belongs to the system, and the homes; not what dpkg, the journal and the running system keep for themselves. */
const LISTING =
  "find / -xdev \\( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /var/lib/systemd -o -path /home -o -path /var/root \\) -prune -o -printf '%p %M %u %g %l\\n' | LC_ALL=C sort";

/** A Debian with systemd, in which the package is installed. */
describe.skipIf(reason !== undefined || debianPackage === undefined)('the service of the package, in systemd', () => {
  test(
    'starts at login, at boot and on first use, again after a kill and never after a shutdown, and leaves nothing',
    async () => {
      const { home, rdctl } = toolHome();
      linkImages(home);
      await prepareMachine(join(home, 'state', 'drivers', 'qemu'));
      expect(await rdctl('apply', '-f', 'examples/moby.yaml', '--driver', 'qemu')).toMatchObject({ exit: 0 });
      const run = async (...words: string[]) => {
        const { exit, out, err } = await rdctl('shell', ...words);
        if (exit !== 0) throw new Error(`${words.at(-1)}\nexit ${exit}: ${out}${err}`);
        return out.trim();
      };
      const root = (script: string) => run('sh', '-c', FUNCTIONS + script);
      const asUser = ['setpriv', '--reuid', 'dev', '--regid', 'dev', '--init-groups', 'env', '-i', '--chdir=/'];
      const variables = ['HOME=/home/dev', 'PATH=/usr/bin:/bin', 'XDG_RUNTIME_DIR=/run/user/1000', 'NO_COLOR=1'];
      const user = (script: string) => run(...asUser, ...variables, 'sh', '-c', FUNCTIONS + script);

      expect(await rdctl('cp', debianPackage ?? '', 'machine:/tmp/rdctl.deb')).toMatchObject({ exit: 0 });
      await root(`useradd --create-home --uid 1000 dev
        mkdir -p /run/systemd/system/user@.service.d
        printf '${RUNTIME_DIRECTORY}' > /run/systemd/system/user@.service.d/runtime.conf
        systemctl daemon-reload
        ${LISTING} > /tmp/before
        dpkg --install /tmp/rdctl.deb
        loginctl enable-linger dev
        systemctl start user@1000`);

      // At login of a user.
      expect(await user('rdctl service status || true')).toBe(
        '/usr/lib/systemd/user/rdctl.service (of a package)\nNot enabled; not running.\n`systemctl --user enable --now rdctl` starts it at login.',
      );
      const installed = await user(
        'rdctl service install --driver simulated 2>&1; ready; rdctl service status -o json',
      );
      expect(installed).toContain('It comes before /usr/lib/systemd/user/rdctl.service');
      expect(JSON.parse(installed.slice(installed.indexOf('{')))).toMatchObject({
        ...{ from: 'install', unit: '/home/dev/.config/systemd/user/rdctl.service' },
        ...{ packaged: '/usr/lib/systemd/user/rdctl.service', enabled: true, active: true },
      });
      const unit = (...properties: string[]) =>
        user(`systemctl --user show --value ${properties.map((each) => `-P ${each}`).join(' ')} rdctl`);
      expect(await user('systemctl --user is-active rdctl; journalctl --user --unit rdctl --output cat')).toMatch(
        /^active\n[\s\S]*^rdctl listens on http:\/\/127\.0\.0\.1:\d+, driver simulated/m,
      );

      // Shut down: not again, until the next login.
      await user('rdctl shutdown');
      expect(await unit('Result', 'ActiveState')).toBe('success\ninactive');
      expect(
        await user('systemctl --user is-enabled rdctl; readlink ~/.config/systemd/user/default.target.wants/*'),
      ).toBe('enabled\n/home/dev/.config/systemd/user/rdctl.service');

      // On first use, twice; nothing runs before and between.
      expect(await user('rdctl service install --driver simulated --on-first-use 2>&1')).toContain('first used');
      for (const command of ['list-settings', 'status']) {
        expect(await unit('ActiveState')).toBe('inactive');
        // 2: the service that was started has not converged yet.
        expect(await user(`rdctl ${command} || test $? = 2`)).not.toBe('');
        expect(await unit('ActiveState')).toBe('active');
        await user('rdctl shutdown');
      }
      expect(await user('rdctl service status || true')).toContain('Enabled on first use; not running.');

      await user('rdctl service uninstall');
      const left = `find ~/.config/systemd /run/user/1000/rdctl ! -type d; systemctl --user list-units --all --plain --no-legend 'rdctl*'`;
      expect(await user(left)).toBe('');

      // At boot, for root: a unit of the package, then one of its own instead.
      await root('systemctl enable rdctl');
      expect(await root('rdctl service status --system || true')).toBe(
        '/usr/lib/systemd/system/rdctl.service (of a package)\nEnabled; not running.',
      );
      expect(await root('rdctl service install --system --driver simulated 2>&1; ready')).toContain(
        'It comes before /usr/lib/systemd/system/rdctl.service, which is no longer used.',
      );

      // Killed: again with the same desired state.
      await root('rdctl set --container-engine.allowed-images.enabled=true');
      const settings = await root('rdctl list-settings');
      const killed = await root('systemctl show -P MainPID rdctl');
      await root(`rm "$HOME/.local/share/rdctl/app-engine.json"; kill -KILL ${killed}; ready`);
      expect(await root('systemctl show -P FragmentPath -P NRestarts rdctl; systemctl is-active rdctl')).toMatch(
        /^(?:1\n\/etc\/systemd\/system\/rdctl\.service|\/etc\/systemd\/system\/rdctl\.service\n1)\nactive$/,
      );
      expect(await root('rdctl list-settings')).toBe(settings);

      // Removal ends what runs the package's program.
      await root('dpkg --purge rdctl');
      expect(await root('exit_of pgrep --full ^/usr/bin/rdctl; systemctl is-active rdctl || true')).toBe('1\ninactive');
      await root(`rm -r /home/dev; ${LISTING} > /tmp/after`);
      expect(await root('diff /tmp/before /tmp/after || true')).toBe('');
    },
    LIMIT_MS,
  );
});
