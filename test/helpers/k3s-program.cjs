// Stands for k3s in tests: takes the real arguments and files, keeps a database, serves the API over TLS with client certificates.
// The lines before this file in what is installed define VERSION, SCRIPT_FILE and NODE_PASSWORD. SCRIPT_FILE is read again by
// every request, so that a test changes what happens while the program runs.
const fs = require('node:fs');
const https = require('node:https');
const path = require('node:path');

const script = () => JSON.parse(fs.readFileSync(SCRIPT_FILE, 'utf8'));
const write = (file, text, mode = 0o600) => {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text, { mode });
};
const fail = (message) => {
  console.error(`level=fatal msg="${message}"`);
  process.exit(1);
};

if (process.argv.includes('--version')) {
  const { faults } = script();
  if (faults.version === 'fails') fail('exec format error');
  console.log(`k3s version ${faults.version ?? VERSION} (0123abcd)\ngo version go1.24.0`);
  process.exit(0);
}

const [, , command, flag, file] = process.argv;
if (command !== 'server' || flag !== '--config') fail(`unknown command ${process.argv.slice(2).join(' ')}`);
// The real one hides its arguments like this.
process.title = `${process.argv[1]} server`;
const config = JSON.parse(fs.readFileSync(file, 'utf8'));
const { faults, certificates } = script();
if (faults.start === 'exit') fail('starting kubernetes: cannot start');
if (config.docker !== undefined && config.docker !== true) fail('docker is a switch');

const database = path.join(config['data-dir'], 'server', 'db', 'state.json');
const numbers = (text) => (text.match(/\d+/g) ?? []).map((digits) => digits.padStart(5, '0')).join('.');
const password = fs.readFileSync(NODE_PASSWORD, 'utf8').trim();
const before = fs.existsSync(database) ? JSON.parse(fs.readFileSync(database, 'utf8')) : undefined;
if (before && numbers(before.version) > numbers(VERSION)) fail(`the database is of ${before.version}`);
if (before && before.password !== password) fail('Node password rejected, duplicate hostname');
write(database, JSON.stringify({ ...before, version: VERSION, password, starts: (before?.starts ?? 0) + 1, config }));
write(path.join(config['kubelet-arg'].find((arg) => arg.startsWith('root-dir=')).slice(9), 'pods', 'one'), '');

if (faults.term === 'ignored') process.on('SIGTERM', () => console.log('level=info msg="not now"'));
else process.on('SIGTERM', () => process.exit(0));
if (faults.start === 'hang') return void setInterval(() => undefined, 1000);

const base64 = (text) => Buffer.from(text).toString('base64');
const kubeconfig = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${base64(faults.authority ?? certificates.ca)}
    server: https://127.0.0.1:${config['https-listen-port']}
  name: default
contexts:
- context:
    cluster: default
    user: default
  name: default
current-context: default
kind: Config
users:
- name: default
  user:
    client-certificate-data: ${base64(certificates.client)}
    client-key-data: ${base64(certificates.clientKey)}
`;

function node() {
  const ready = script().faults.node === undefined;
  const message = ready ? 'kubelet is posting ready status' : script().faults.node;
  const conditions = [{ type: 'MemoryPressure', status: 'False' }, { type: 'Ready', status: ready ? 'True' : 'False', message }];
  return { metadata: { name: config['node-name'] }, status: { conditions, nodeInfo: { kubeletVersion: VERSION } } };
}

function answer(request, response) {
  const { faults, services } = script();
  const url = new URL(request.url, 'https://localhost');
  const say = (status, value) => {
    response.writeHead(status, { 'content-type': typeof value === 'string' ? 'text/plain' : 'application/json' });
    response.end(typeof value === 'string' ? value : JSON.stringify(value));
  };
  if (faults.api === 'silent') return;
  if (faults.api === 'breaks') return request.socket.destroy();
  if (faults.api === 'crash') return process.kill(process.pid, 'SIGKILL');
  if (url.pathname === '/readyz') return say(faults.readyz ?? 200, faults.readyz ? '[-]etcd failed' : 'ok');
  if (url.pathname === '/version') return say(200, { major: '1', gitVersion: VERSION });
  if (url.pathname === '/api') return say(200, { kind: 'APIVersions', versions: ['v1'] });
  if (url.pathname === '/apis') return say(200, { kind: 'APIGroupList', apiVersion: 'v1', groups: [] });
  if (url.pathname === '/api/v1') {
    const nodes = { name: 'nodes', namespaced: false, kind: 'Node', verbs: ['get', 'list'], shortNames: ['no'] };
    return say(200, { kind: 'APIResourceList', groupVersion: 'v1', resources: [nodes] });
  }
  if (url.pathname === '/api/v1/nodes') {
    if (faults.nodes === 'garbled') return say(200, 'no json');
    return say(200, { kind: 'NodeList', apiVersion: 'v1', items: faults.nodes === 'none' ? [] : [node()] });
  }
  const [, namespace, name] = url.pathname.match(/^\/api\/v1\/namespaces\/([^/]+)\/services\/([^/]+)$/) ?? [];
  if (namespace !== undefined) {
    const found = services[`${namespace}/${name}`];
    return found ? say(200, { kind: 'Service', spec: found.spec }) : say(404, { kind: 'Status', code: 404 });
  }
  const slices = url.pathname.match(/^\/apis\/discovery\.k8s\.io\/v1\/namespaces\/([^/]+)\/endpointslices$/);
  if (slices) {
    const label = url.searchParams.get('labelSelector')?.replace('kubernetes.io/service-name=', '');
    return say(200, { kind: 'EndpointSliceList', items: services[`${slices[1]}/${label}`]?.slices ?? [] });
  }
  say(404, { kind: 'Status', code: 404 });
}

if (faults.start !== 'no kubeconfig') write(config['write-kubeconfig'], kubeconfig);
const { server: cert, serverKey: key, ca } = certificates;
const server = https.createServer({ cert, key, ca, requestCert: true, rejectUnauthorized: true }, answer);
server.on('error', (error) => fail(`starting kubernetes: ${error.message}`));
server.listen(config['https-listen-port'], '127.0.0.1', () => console.log(`level=info msg="k3s is up and running"`));
