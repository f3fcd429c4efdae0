import { gzipSync } from 'node:zlib';
import { busyboxImage } from './busybox.ts';
import { CERTIFICATES } from './k3s-certificates.ts';
import type { ReleaseServer } from './k3s-release-server.ts';

/** An image in the archive of every release, which pods run. */
const POD_IMAGE = 'docker.io/test/pod:1';
/** The name of the container that stands in for the pod. */
export const POD = 'pod-web';

/**
 * Serves a release whose program runs in a guest without Node or a compiler. It accepts the real arguments and files, refuses data of a
 * later release and of another node, serves the API over TLS to clients with a certificate of the cluster, and runs the pod of the
 * service `default/web` on the given engine, from the images of the release.
 */
export function publishForGuest(server: ReleaseServer, release: string): void {
  server.publish(release, {
    k3s: program(release),
    'k3s-airgap-images-amd64.tar.gz': gzipSync(busyboxImage(POD_IMAGE), { level: 1 }),
  });
}

function program(release: string): string {
  const file = (name: string, text: string) => `cat > "$tls/${name}" <<'END'\n${text}END\n`;
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  return `#!/bin/sh
set -eu
umask 077
release='${release}'
fail() { echo "level=fatal msg=\\"$*\\"" >&2; exit 1; }
if [ "$1" = --version ]; then echo "k3s version $release (0123abcd)"; echo 'go version go1.24.0'; exit 0; fi
[ "$#" -eq 3 ] && [ "$1 $2" = 'server --config' ] || fail "unknown command $*"
config=$3
said() { sed -n "s/^ *\\"$1\\": \\"\\{0,1\\}\\([^\\",]*\\)\\"\\{0,1\\},\\{0,1\\}$/\\1/p" "$config"; }
data=$(said data-dir) port=$(said https-listen-port) socket=$(said container-runtime-endpoint)
db=$data/server/db tls=$data/server/tls api=$data/server/api
mkdir -p "$db" "$tls" "$api"

password=$(cat /etc/rancher/node/password)
if [ -e "$db/release" ]; then
  newer=$(printf '%s\\n%s\\n' "$release" "$(cat "$db/release")" | sort -V | tail -n 1)
  [ "$newer" = "$release" ] || fail "the database is of $newer"
  [ "$(cat "$db/password")" = "$password" ] || fail 'Node password rejected, duplicate hostname'
fi
echo "$release" > "$db/release"
echo "$password" > "$db/password"
echo "$release $port" >> "$db/starts"
cp "$config" "$db/config"

# The pod, with a page that says which release made it; it stays until somebody removes it.
at=41080
made="/bin/busybox mkdir -p /www; [ -e /www/index.html ] || echo 'made by $release' > /www/index.html; exec /bin/busybox httpd -f -p"
if [ "$(said docker)" = true ]; then
  docker="docker --host unix://$socket"
  $docker start ${POD} > /dev/null 2>&1 || $docker run --detach --name ${POD} --label io.kubernetes.pod.uid=1 \\
    --stop-signal KILL ${POD_IMAGE} /bin/sh -c "$made $at -h /www" > /dev/null
  address=$($docker inspect --format '{{.NetworkSettings.IPAddress}}' ${POD})
else
  address=127.0.0.1
  ctr="ctr --address $socket --namespace k8s.io"
  $ctr tasks start --detach ${POD} 2> /dev/null ||
    $ctr run --detach --net-host ${POD_IMAGE} ${POD} /bin/sh -c "$made $address:$at -h /www"
fi

say() {
  mkdir -p "$api/$(dirname "$1")"
  printf 'HTTP/1.0 %s\\r\\nContent-Type: application/json\\r\\nContent-Length: %s\\r\\n\\r\\n%s' "$2" "\${#3}" "$3" > "$api/$1"
}
say readyz '200 OK' ok
say version '200 OK' "{\\"gitVersion\\":\\"$release\\"}"
say api/v1/nodes '200 OK' '{"items":[{"status":{"conditions":[{"type":"Ready","status":"True"}]}}]}'
say api/v1/namespaces/default/services/web '200 OK' '{"spec":{"ports":[{"name":"http","port":80,"targetPort":41080}]}}'
say 'apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb' '200 OK' \\
  "{\\"items\\":[{\\"addressType\\":\\"IPv4\\",\\"ports\\":[{\\"name\\":\\"http\\",\\"port\\":$at}],\\"endpoints\\":[{\\"addresses\\":[\\"$address\\"],\\"conditions\\":{\\"ready\\":true}}]}]}"

${file('ca.crt', CERTIFICATES.ca)}${file('server.crt', CERTIFICATES.server)}${file('server.key', CERTIFICATES.serverKey)}
cat > "$(said write-kubeconfig)" <<END
apiVersion: v1
kind: Config
clusters:
- name: default
  cluster: {certificate-authority-data: ${base64(CERTIFICATES.ca)}, server: 'https://127.0.0.1:$port'}
contexts:
- name: default
  context: {cluster: default, user: default}
current-context: default
users:
- name: default
  user: {client-certificate-data: ${base64(CERTIFICATES.client)}, client-key-data: ${base64(CERTIFICATES.clientKey)}}
END
echo 'level=info msg="k3s is up and running"'
cd "$api"
exec openssl s_server -accept "127.0.0.1:$port" -HTTP -quiet -cert "$tls/server.crt" -key "$tls/server.key" \\
  -CAfile "$tls/ca.crt" -Verify 1 -verify_return_error
`;
}
