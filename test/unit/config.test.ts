import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { createAuthority, issue } from '../../sandbox/pki.ts';
import { exitCodeOf, run } from '../../src/commands.ts';
import { readConfig } from '../../src/config.ts';
import { access } from '../../src/features/access.ts';
import { notify } from '../../src/features/notify.ts';
import { openServingFiles } from '../../src/features/serving.ts';
import { UsageError } from '../../src/flag-types.ts';
import { usage } from '../../src/flags.ts';
import { CodedError, describe as describeError } from '../../src/kit/errors.ts';
import { ambientCredentials } from '../../src/kube/kubeconfig.ts';
import { noLog } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { webhookFiles } from '../../webhooks/webhook-files.ts';
import { unreachableKubeconfig } from '../support/unreachable-kubeconfig.ts';

const configurationsOf = (feature: 'access' | 'inventory') =>
  [
    ...new Set(
      [...webhookFiles(feature).values()].flatMap((file) =>
        parseAllDocuments(file).map((document) => document.getIn(['metadata', 'name'])),
      ),
    ),
  ].sort();
const webhookConfigurations = configurationsOf('access');

describe('configuration', () => {
  it('has the documented defaults', () => {
    assert.deepEqual(readConfig([], {}), {
      features: ['access'],
      kubeconfig: {},
      port: 9443,
      bindAddress: '0.0.0.0',
      certificates: 'files',
      certFile: '/etc/drawbridge/tls/tls.crt',
      keyFile: '/etc/drawbridge/tls/tls.key',
      clientCaFile: undefined,
      certificateSecret: 'drawbridge-own-certificate',
      certificateNames: ['drawbridge-webhook.drawbridge-system.svc'],
      webhookConfigurations,
      health: { host: '0.0.0.0', port: 8081 },
      metricsPort: 8080,
      auditLog: '-',
      leaderElect: true,
      leaseNamespace: 'drawbridge-system',
      bindingLeaseNamespace: 'drawbridge-system',
      leaseName: 'kube-bind',
      callbackUrl: 'https://drawbridge-callbacks.drawbridge-system.svc',
      callbackPort: 9444,
      componentApiUrl: undefined,
      allowLoopbackHttp: false,
      peerAddress: undefined,
      providerPollingInterval: 15_000,
      bindable: undefined,
      dryRun: false,
      bindableNamespaces: undefined,
      gatewayPort: 9445,
      recordings: undefined,
      recordingRetention: 720 * 3_600_000,
      notifyAllowCidrs: undefined,
      notifyAddresses: undefined,
      grantable: undefined,
      accessPods: 'confined',
      trustExistingTemplates: false,
      maxGrantsPerUser: 0,
      maxGrantsPerNamespace: 0,
      adoptSigningKeys: false,
      identity: `drawbridge-${process.pid}`,
      breakGlassGroup: undefined,
      logLevel: 'info',
      logFormat: 'json',
      timeout: 240_000,
    });
  });

  it('creates a certificate for the Service in the namespace of the lease, or for the given names', () => {
    assert.deepEqual(readConfig(['--lease-namespace=ns'], {}).certificateNames, ['drawbridge-webhook.ns.svc']);
    const { certificateNames } = readConfig(['--certificate-names=a.b.svc,localhost'], {});
    assert.deepEqual(certificateNames, ['a.b.svc', 'localhost']);
  });

  it('is frozen', () => assert.ok(Object.isFrozen(readConfig([], {}))));

  it('prefers a flag to the environment, and the environment to the default', () => {
    const env = { DRAWBRIDGE_PORT: '1111', DRAWBRIDGE_LOG_LEVEL: 'debug' };
    const { port, logLevel, logFormat } = readConfig(['--port=2222'], env);
    assert.deepEqual([port, logLevel, logFormat], [2222, 'debug', 'json']);
  });

  it('identifies replicas by host name and process', () => {
    assert.equal(readConfig([], { HOSTNAME: 'drawbridge-7d9f' }).identity, `drawbridge-7d9f-${process.pid}`);
    assert.equal(readConfig(['--identity=left'], { HOSTNAME: 'drawbridge-7d9f' }).identity, 'left');
  });

  it('runs the named features, always in the same order', () => {
    assert.deepEqual(readConfig(['--features=binding'], {}).features, ['binding']);
    assert.deepEqual(readConfig(['--features=binding,access'], {}).features, ['access', 'binding']);
    assert.deepEqual(readConfig([], { DRAWBRIDGE_FEATURES: 'binding' }).features, ['binding']);
    assert.deepEqual(readConfig(['--features=inventory,access'], {}).features, ['access', 'inventory']);
  });

  it('reads private networks of IPv4 and IPv6 that notifications may go to', () => {
    const { notifyAllowCidrs } = readConfig(['--notify-allow-cidrs=10.20.0.0/16,fd00:20::/32'], {});
    assert.deepEqual(notifyAllowCidrs, ['10.20.0.0/16', 'fd00:20::/32']);
    assert.equal(readConfig(['--notify-allow-cidrs='], {}).notifyAllowCidrs, undefined);
  });

  it('writes caBundle of the enabled features’ webhooks, with a certificate for all their names', () => {
    const own = (features: string, ...flags: string[]) => {
      const { webhookConfigurations, certificateNames } = readConfig([`--features=${features}`, ...flags], {});
      return { webhookConfigurations, certificateNames };
    };
    const [webhook, inventory, callbacks] = [
      'drawbridge-webhook.drawbridge-system.svc',
      'drawbridge-inventory-webhook.drawbridge-system.svc',
      'drawbridge-callbacks.drawbridge-system.svc',
    ];
    assert.deepEqual(own('access,binding'), { webhookConfigurations, certificateNames: [webhook] });
    assert.deepEqual(own('access,inventory'), {
      webhookConfigurations: [...webhookConfigurations, ...configurationsOf('inventory')],
      certificateNames: [webhook, inventory, callbacks],
    });
    assert.deepEqual(own('inventory', '--callback-url=https://callbacks.example.org:8443'), {
      webhookConfigurations: configurationsOf('inventory'),
      certificateNames: [inventory, 'callbacks.example.org'],
    });
    const plain = own('inventory', '--callback-url=http://127.0.0.1:1', '--allow-loopback-http=true');
    assert.deepEqual(plain.certificateNames, [inventory]);
  });

  it('takes the address for other replicas of the gateway from the bind address, if that is one of its own', () => {
    const addressOf = (...args: string[]) => readConfig(args, {}).peerAddress;
    assert.equal(addressOf('--bind-address=10.0.0.7'), '10.0.0.7');
    assert.equal(addressOf('--bind-address=10.0.0.7', '--peer-address=fd00::7'), 'fd00::7');
    for (const address of ['::', 'localhost']) assert.equal(addressOf(`--bind-address=${address}`), undefined);
  });

  it('stores recordings in a folder, or in a bucket of AWS or of another server', () => {
    const recordings = (args: string[], env: Record<string, string> = {}) =>
      readConfig(['--features=gateway', ...args], env).recordings;
    assert.deepEqual(recordings(['--recordings=/recordings'], { AWS_REGION: 'eu-west-1' }), { folder: '/recordings' });
    assert.deepEqual(recordings(['--recordings=s3://recordings/prod/eu'], { AWS_REGION: 'eu-west-1' }), {
      bucket: 'recordings',
      prefix: 'prod/eu',
      region: 'eu-west-1',
      endpoint: undefined,
    });
    assert.deepEqual(recordings(['--recordings=s3://recordings/', '--s3-endpoint=https://minio:9000']), {
      bucket: 'recordings',
      prefix: '',
      region: 'us-east-1',
      endpoint: 'https://minio:9000',
    });
  });

  it("replaces kube-bind's konnector if only binding is enabled", () => {
    const pod = { POD_NAME: 'konnector-x', POD_NAMESPACE: 'kube-bind' };
    const flags = ['--features=binding'];
    const pick = (args: string[], env: Record<string, string>) => {
      const { health, metricsPort, bindingLeaseNamespace, leaseName, identity } = readConfig([...flags, ...args], env);
      return [`${health.host}:${health.port}`, metricsPort, `${bindingLeaseNamespace}/${leaseName}`, identity];
    };
    assert.deepEqual(pick([], pod), ['0.0.0.0:8090', 0, 'kube-bind/kube-bind', 'konnector-x']);
    assert.deepEqual(pick([], {}), ['0.0.0.0:8090', 0, 'kube-system/kube-bind', `drawbridge-${process.pid}`]);
    assert.deepEqual(
      pick(['--lease-namespace=a', '--lease-name=b', '--identity=c', '--health-port=1', '--metrics-port=2'], pod),
      ['0.0.0.0:1', 2, 'a/b', 'c'],
    );
  });

  it('keeps its defaults if access and binding are enabled', () => {
    const pod = { POD_NAME: 'konnector-x', POD_NAMESPACE: 'kube-bind' };
    const { health, metricsPort, leaseNamespace, identity } = readConfig(['--features=access,binding'], pod);
    assert.deepEqual(
      [health.port, metricsPort, leaseNamespace, identity],
      [8081, 8080, 'drawbridge-system', 'konnector-x'],
    );
    assert.equal(readConfig([], { ...pod, HOSTNAME: 'h' }).identity, `h-${process.pid}`);
  });

  it("keeps the Lease of binding where kube-bind's konnectors expect it, and everything else in its own namespace", () => {
    const args = ['--features=access,binding', '--lease-namespace=home', '--binding-lease-namespace=kube-bind'];
    const { leaseNamespace, bindingLeaseNamespace } = readConfig(args, {});
    assert.deepEqual([leaseNamespace, bindingLeaseNamespace], ['home', 'kube-bind']);
  });

  const addresses: [string, string, number][] = [
    [':0', '0.0.0.0', 0],
    [':8090', '0.0.0.0', 8090],
    ['127.0.0.1:1', '127.0.0.1', 1],
    ['[::1]:2', '::1', 2],
  ];
  for (const [address, host, port] of addresses) {
    it(`reads the server address ${address}`, () => {
      assert.deepEqual(readConfig([`--server-address=${address}`, '--health-port=7'], {}).health, { host, port });
    });
  }

  const klog: [string[], string, string][] = [
    [['-v=2', '--logging-format=text'], 'info', 'text'],
    [['-v', '4'], 'debug', 'json'],
    [['-v4'], 'debug', 'json'],
    [['-v=-1'], 'info', 'json'],
    [['--v=6', '--logging-format=text'], 'debug', 'text'],
    [['-v=6', '--log-level=warn', '--log-format=json', '--logging-format=text'], 'warn', 'json'],
  ];
  for (const [args, level, format] of klog) {
    it(`logs at ${level} as ${format} for ${args.join(' ')}`, () => {
      const { logLevel, logFormat } = readConfig(args, {});
      assert.deepEqual([logLevel, logFormat], [level, format]);
    });
  }

  it('supports a dry run, for binding only', () => {
    assert.equal(readConfig(['--features=binding', '--dry-run'], {}).dryRun, true);
    assert.throws(
      () => readConfig(['--features=access,binding', '--dry-run'], {}),
      /--dry-run is given; it works only if binding runs alone; remove it, or start another server with --features=binding$/,
    );
  });

  it('accepts a context of the kubeconfig', () => {
    assert.deepEqual(readConfig(['--kubeconfig=/a', '--context=b'], {}).kubeconfig, { file: '/a', context: 'b' });
    assert.deepEqual(readConfig(['--context=b'], { KUBECONFIG: '/a' }).kubeconfig, { paths: '/a', context: 'b' });
  });

  it('accepts a list of bindable kinds', () => {
    const { bindable } = readConfig(['--bindable=kettles.kitchen.example,pots.kitchen.example'], {});
    assert.deepEqual(bindable, ['kettles.kitchen.example', 'pots.kitchen.example']);
  });

  for (const [flag, expected] of [
    ['--leader-elect', true],
    ['--leader-elect=true', true],
    ['--leader-elect=false', false],
  ] as const)
    it(`reads ${flag} as ${expected}`, () => assert.equal(readConfig([flag], {}).leaderElect, expected));

  it('treats an empty namespace of the lease as unset', () => {
    assert.equal(readConfig(['--lease-namespace='], {}).leaseNamespace, 'drawbridge-system');
    const env = { DRAWBRIDGE_LEASE_NAMESPACE: '', POD_NAMESPACE: 'kube-bind' };
    assert.equal(readConfig(['--features=binding'], env).leaseNamespace, 'kube-bind');
  });

  it('treats an empty kubeconfig as unset', () => assert.deepEqual(readConfig([], { KUBECONFIG: '' }).kubeconfig, {}));

  it('reads the flag as one file and the variable as a list of files', () => {
    assert.deepEqual(readConfig(['--kubeconfig=/a:b'], { KUBECONFIG: '/c:/d' }).kubeconfig, { file: '/a:b' });
    assert.deepEqual(readConfig([], { KUBECONFIG: '/c:/d' }).kubeconfig, { paths: '/c:/d' });
  });

  const mistakes: [args: string, message: RegExp, env?: Record<string, string>][] = [
    ['--port=web', /^--port is "web"; it must be a port number from 0 to 65535$/],
    ['--port=', /^--port must not be empty$/],
    ['--log-level=verbose', /^--log-level is "verbose"; it must be one of error, warn, info, debug$/],
    [
      '--certificate-names=a,,b',
      /^--certificate-names contains ""; it must be names separated by commas, without spaces; a name has 1 to 253/,
    ],
    ['--features=acces', /^--features is "acces"; it must be access, binding, inventory, gateway, notify, or several/],
    ['--callback-url=http://127.0.0.1:1', /^--callback-url is .* it must be https, or http on a loopback/],
    [
      '--callback-url=http://example.org --allow-loopback-http=true',
      /^--callback-url is .* it must be https, or http on a loopback/,
    ],
    [
      '--recordings=s3://B --s3-region=eu-west-1',
      /^--recordings is "s3:\/\/B"; it must be a folder, s3:\/\/BUCKET, or s3:/,
    ],
    ['--recordings=s3://recordings/../x --s3-region=eu-west-1', /^--recordings is .* single slashes/],
    ['--recordings=s3://recordings', /^--recordings is .* without a region; pass --s3-region, or/],
    [
      '--recordings=s3://recordings --s3-endpoint=http://minio:9000',
      /^--s3-endpoint is "http:\/\/minio:9000"; it must be an https URL without user/,
    ],
    [
      '--recordings=s3://recordings --s3-endpoint=https://key:secret@minio',
      /^--s3-endpoint is .* it must be an https URL without user/,
    ],
    ['--peer-address=gateway-0', /^--peer-address is "gateway-0"; it must be an IP address/],
    [
      '--notify-allow-cidrs=10.0.0.0/33',
      /^--notify-allow-cidrs contains "10\.0\.0\.0\/33"; it must be CIDRs separated by/,
    ],
    ['--notify-allow-cidrs=10.0.0.0/8,fd00::1', /^--notify-allow-cidrs contains "fd00::1"; it must be CIDRs/],
    ['--callback-url=https://a@b', /^--callback-url is .* it must be an http or https URL without user/],
    ['--component-api-url=http://127.0.0.1', /^--component-api-url is .* it must be an https URL/],
    ['--server-address=8090', /^--server-address is "8090"; it must be HOST:PORT or :PORT, with/],
    ['--provider-polling-interval=1ms', /^--provider-polling-interval is "1ms"; it must be at least 1 s$/],
    ['-v=loud', /^-v is "loud"; it must be a whole number of at most 9 digits$/],
    ['--prot=1', /--prot.*; see drawbridge --help$/],
    ['stray', /stray.*; see drawbridge --help$/],
    ['--port', /--port.*; see drawbridge --help$/],
    ['--timeout=soon', /^--timeout: "soon" is not a duration/],
    ['', /^\$DRAWBRIDGE_METRICS_PORT is "x"/, { DRAWBRIDGE_METRICS_PORT: 'x' }],
    ['--metrics-port=y', /^--metrics-port is "y"/, { DRAWBRIDGE_METRICS_PORT: '1' }],
    ['', /^\$DRAWBRIDGE_PEER_ADDRESS is "::"; it must be an IP address/, { DRAWBRIDGE_PEER_ADDRESS: '::' }],
    [
      '--recordings=s3://recordings',
      /^\$AWS_ENDPOINT_URL_S3 is "http:\/\/minio"; it must be an https URL/,
      { AWS_ENDPOINT_URL_S3: 'http://minio' },
    ],
    [
      '',
      /^\$DRAWBRIDGE_DRY_RUN is given; it works only .* or start another server with --features=binding$/,
      { DRAWBRIDGE_DRY_RUN: 'true' },
    ],
  ];
  for (const [line, message, env = {}] of mistakes) {
    const args = line === '' ? [] : line.split(' ');
    it(`rejects ${[...args, ...Object.entries(env).map((pair) => pair.join('='))].join(' ')}`, () => {
      assert.throws(
        () => readConfig(args, env),
        (error) => error instanceof UsageError && message.test(error.message) && !error.message.includes('\n'),
      );
    });
  }

  it('explains every flag with its default and variable', () => {
    const text = usage();
    assert.match(text, /--port PORT +\[\$DRAWBRIDGE_PORT\]\n +Port of the admission webhooks.*Default: 9443\.\n/);
    assert.match(text, /--kubeconfig FILE +\[\$KUBECONFIG\]/);
    for (const line of text.split('\n')) assert.ok(line.length < 120, line);
  });
});

const program = fileURLToPath(new URL('../../dist/drawbridge.js', import.meta.url));

describe('the program', () => {
  let folder: string;

  before(() => {
    if (!existsSync(program)) throw new Error(`${program} is missing: run npm run build`);
    folder = mkdtempSync(join(tmpdir(), 'drawbridge-config-'));
    writeFileSync(join(folder, 'text'), 'neither PEM nor YAML: [');
    const { certificate, key } = issue(createAuthority('test'), { commonName: 'localhost', serves: ['localhost'] });
    writeFileSync(join(folder, 'tls.crt'), certificate);
    writeFileSync(join(folder, 'tls.key'), key);
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  const inFolder = (args: readonly string[]): string[] => args.map((arg) => arg.replace('FOLDER', folder));
  const withCertificate = ['--cert-file=FOLDER/tls.crt', '--key-file=FOLDER/tls.key'];

  /** Runs the program as a child process. */
  const spawned = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...inFolder(args)], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'], HOME: folder },
      timeout: 60_000,
    });
    return { status, stdout, stderr };
  };

  /** Runs the program in this process. */
  const ran = async (...args: string[]) => {
    let [stdout, stderr] = ['', ''];
    const status = await run(args, {
      print: (text) => {
        stdout += text;
      },
      printError: (text) => {
        stderr += text;
      },
    });
    return { status, stdout, stderr };
  };

  it('prints its help and version', async () => {
    assert.deepEqual(await ran('--help'), { status: 0, stdout: usage(), stderr: '' });
    assert.deepEqual(await ran('help'), { status: 0, stdout: usage(), stderr: '' });
    const { status, stdout } = spawned('--version');
    assert.deepEqual([status, /^drawbridge \d+\.\d+\.\d+\n$/.test(stdout)], [0, true]);
  });

  const wrongArguments: [what: string, args: string[], says: RegExp][] = [
    ['no command', [], /no command is given; available commands: audit, revoke-all, serve; see drawbridge --help/],
    ['a flag without a command', ['--features', 'access'], /no command before "--features"; available/],
    ['an unknown command', ['sevre'], /unknown command "sevre"/],
    ['an unknown flag', ['serve', '--prot=1'], /--prot/],
  ];
  for (const [what, args, says] of wrongArguments) {
    it(`ends with exit code 2 and one line for ${what}`, async () => {
      const { status, stdout, stderr } = await ran(...args);
      assert.deepEqual([status, stdout], [2, '']);
      assert.match(stderr, says);
      assert.match(stderr, /^drawbridge: [^\n]+\n$/);
    });
  }

  const kubeconfig = (...args: string[]) => ambientCredentials(readConfig(inFolder(args), {}).kubeconfig);
  const grantable = (file: string) => access.readFiles(readConfig(inFolder([`--grantable=FOLDER/${file}`]), {}));
  const addresses = (file: string) => notify.readFiles(readConfig(inFolder([`--notify-addresses=FOLDER/${file}`]), {}));
  const wrongFiles: [what: string, open: () => unknown, says: RegExp][] = [
    ['a certificate that is not there', () => servingFiles('--cert-file=FOLDER/none'), /FOLDER\/none/],
    [
      'a certificate that is none',
      () => servingFiles('--cert-file=FOLDER/text', '--key-file=FOLDER/text'),
      /FOLDER\/text/,
    ],
    [
      'an authority of clients that is not there',
      () => servingFiles('--certificates=own', '--client-ca-file=FOLDER/none'),
      /FOLDER\/none/,
    ],
    [
      'an authority of clients that is none',
      () => servingFiles('--certificates=own', '--client-ca-file=FOLDER/text'),
      /FOLDER\/text contains no CA certificate/,
    ],
    ['an audit log that is a folder', () => servingFiles(...withCertificate, '--audit-log=FOLDER'), /FOLDER/],
    ['a kubeconfig that is not there', () => kubeconfig('--kubeconfig=FOLDER/none'), /FOLDER\/none/],
    ['a list of grantable rules that is not there', () => grantable('none'), /--grantable.*FOLDER\/none.*ENOENT/],
    ['a list of grantable rules that is none', () => grantable('text'), /--grantable.*FOLDER\/text/],
    ['mail addresses that are not there', () => addresses('none'), /--notify-addresses.*FOLDER\/none.*ENOENT/],
    ['mail addresses that are none', () => addresses('text'), /--notify-addresses.*FOLDER\/text/],
    ['a kubeconfig that is none', () => kubeconfig('--kubeconfig=FOLDER/text'), /FOLDER\/text/],
  ];
  const servingFiles = (...args: string[]): unknown =>
    openServingFiles(readConfig(inFolder(args), {}), noLog, createMetrics());
  for (const [what, open, says] of wrongFiles) {
    it(`has exit code 2 and one line for ${what}`, async () => {
      await assert.rejects(
        async () => open(),
        (error) => {
          assert.equal(exitCodeOf(error), 2);
          assert.match(describeError(error).replaceAll(folder, 'FOLDER'), says);
          assert.match(describeError(error), /^[^\n]+$/);
          return true;
        },
      );
    });
  }

  it('prints only that line, and exits with that code, for the last of these cases', () => {
    const { status, stdout, stderr } = spawned('serve', ...withCertificate, '--kubeconfig=FOLDER/text');
    assert.deepEqual([status, stdout], [2, ''], stderr);
    assert.match(stderr.replaceAll(folder, 'FOLDER'), /^drawbridge: [^\n]*FOLDER\/text[^\n]*\n$/);
  });

  it('stops in order, with exit code 1, if the thread that answers probes ends', function () {
    this.timeout(60_000);
    const copy = join(folder, 'drawbridge.mjs');
    copyFileSync(program, copy);
    writeFileSync(
      join(folder, 'health-thread.mjs'),
      `import { parentPort } from 'node:worker_threads';
       parentPort.postMessage({ port: 1 });
       setTimeout(() => { throw new Error('a bug'); }, 500);`,
    );
    writeFileSync(join(folder, 'kubeconfig'), unreachableKubeconfig);
    const flags = ['--features=binding', `--kubeconfig=${folder}/kubeconfig`, '--health-port=0', '--metrics-port=0'];
    const { status, stderr } = spawnSync(process.execPath, [copy, 'serve', ...flags], {
      encoding: 'utf8',
      env: { HOME: folder },
    });
    const [stopped = '', last] = stderr.trim().split('\n').slice(-2);
    assert.equal(JSON.parse(stopped).message, 'stopped', stderr);
    assert.match(last ?? '', /^drawbridge: the thread that answers probes ended: a bug;/);
    assert.equal(status, 1);
  });

  it('has exit code 1 for errors that no flag and no file can fix', () => {
    for (const error of [new Error('a bug'), new CodedError('NotLeading', 'lost'), undefined]) {
      assert.equal(exitCodeOf(error), 1);
    }
  });
});
