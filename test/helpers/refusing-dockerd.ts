import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A directory in `parent` with a `dockerd` to put first on `PATH`: the real one, which refuses a configuration with the classic image store as a release
 * without it would. The store of an engine's old network (`isolated`) is none of its business.
 */
export function refusingDockerd(parent: string): string {
  const dockerd = (process.env.PATH ?? '')
    .split(':')
    .map((folder) => join(folder, 'dockerd'))
    .find(existsSync);
  const directory = join(parent, 'refusing-dockerd');
  mkdirSync(directory);
  const script = `#!/bin/sh
for word do [ "$previous" = --config-file ] && config=$word; previous=$word; done
case $config in */isolated/*) exec ${dockerd} "$@" ;; esac
if grep -q '"containerd-snapshotter": *false' "$config"; then
  echo "unable to configure the Docker daemon with file $config: no such store (pid $$)" >&2
  exit 1
fi
exec ${dockerd} "$@"
`;
  writeFileSync(join(directory, 'dockerd'), script, { mode: 0o755 });
  return directory;
}
