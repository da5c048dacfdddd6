import assert from 'node:assert/strict';
import { appendFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { issue, renewAuthority } from '../../../sandbox/pki.ts';
import { until } from '../../../sandbox/wait.ts';
import { grantProxyPath } from '../../../src/api/gateway/names.ts';
import { GatewayStage, type StagedGrant } from '../../support/gateway-stage.ts';

describe('the gateway of an API server with an empty --requestheader-allowed-names', () => {
  let stage: GatewayStage;
  let grant: StagedGrant;

  before(async function () {
    this.timeout(180_000);
    stage = await GatewayStage.open(undefined, ['--requestheader-allowed-names=']);
    grant = await stage.grant();
  });
  after(() => stage?.close());

  const exec = () => stage.alice.kubectl([...grant.via, 'exec', 'payments', '--', 'echo', 'ran'], { reject: false });
  /** Bob calls the gateway itself, and says that he is alice. */
  const pose = (): Promise<string> => {
    const { authority } = stage.plane;
    const { certificate, key } = issue(authority, { commonName: 'bob', groups: ['devs'] });
    const path = `${grantProxyPath(stage.namespace, grant.name)}/api/v1/namespaces/${stage.namespace}/pods/payments`;
    return new Promise((resolve, reject) => {
      const call = request(
        {
          host: '127.0.0.1',
          port: stage.gateway.port,
          path,
          agent: false,
          ca: authority.certificate,
          servername: `drawbridge-gateway.${stage.namespace}.svc`,
          cert: certificate,
          key,
          headers: { 'x-remote-user': 'alice' },
        },
        (answer) => text(answer).then((body) => resolve(`${answer.statusCode} ${body}`), reject),
      );
      call.on('error', reject);
      call.end();
    });
  };

  it('serves while no authority of the front proxy signs certificates of users', async () => {
    const { code, stdout, stderr } = await exec();
    assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'ran\n', stderr: '' });
    assert.match(await pose(), /^401 .*only the API server may call the gateway/);
  });

  it('refuses every call once one does, because each user could pose as the API server, and its readiness says so', async function () {
    this.timeout(120_000);
    // The API server itself refuses the same certificate in both lists, but not two certificates of one key.
    const { authority, directory } = stage.plane;
    await appendFile(join(directory, 'pki', 'front-proxy-ca.crt'), renewAuthority(authority).certificate);
    await stage.plane.component('kube-apiserver').restart();
    const why = /requestheader-allowed-names is empty, and an authority .* also signs certificates of users/;
    const readiness = `http://127.0.0.1:${stage.gateway.healthPort}/readyz`;
    let said = '';
    const isRefused = async (): Promise<boolean> => {
      const answer = await fetch(readiness);
      said = await answer.text();
      return answer.status === 503 && why.test(said);
    };
    await until('the readiness to say why', isRefused, { timeoutMs: 60_000 }).catch((error: Error) => {
      throw new Error(`${error.message}; it says ${said}`);
    });
    const posed = await pose();
    assert.match(posed, /^503 /);
    assert.match(posed, why);
    const { code, stdout } = await exec();
    assert.deepEqual([code, stdout], [1, '']);
  });
});
