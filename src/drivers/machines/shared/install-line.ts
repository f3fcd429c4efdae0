/**
 * Returns the command that installs Debian packages, complete even if nothing has been installed yet; `'?exact-name(NAME)'` is for a package that not
 * every release has.
 */
export function installLine(packages: readonly string[], root: boolean): string {
  const apt = `${root ? '' : 'sudo '}apt-get`;
  return `${apt} update && ${apt} install --no-install-recommends ${packages.join(' ')}`;
}
