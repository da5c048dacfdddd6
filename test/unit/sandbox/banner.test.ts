import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { accessExamples, commandsToTry } from '../../../sandbox/access-examples.ts';
import { execNote } from '../../../sandbox/addresses.ts';
import type { PlaneClient } from '../../../sandbox/plane-client.ts';

describe('the sandbox says to people who try it', () => {
  const plane = { binaries: { kubectl: '/bin/kubectl' }, adminKubeconfig: '/admin.yaml' } as unknown as PlaneClient;
  const lines = commandsToTry(plane, { alice: '/alice.yaml', bob: '/bob.yaml', carol: '/carol.yaml' });
  const lineWith = (text: string): string => lines.find((line) => line.includes(text)) ?? '';

  for (const [file, about] of [
    ['/alice.yaml', 'alice is in group devs'],
    [
      '/carol.yaml',
      'carol of group devs may approve requests through each template that counts her approval, such as payments-debug',
    ],
    ['/bob.yaml', 'bob is in group qa, which no template allows'],
    ['/admin.yaml', 'the administrator'],
  ] as const) {
    it(`how to become each of them, and what they may do: ${about}`, () => {
      const line = lineWith(`KUBECONFIG=${file}`);
      assert.match(line, /^export /);
      assert.ok(line.includes(`   # ${about}`), line);
    });
  }

  it('of groups as the templates have them', () => {
    const groups = [...accessExamples, 'examples/without-exec.yaml']
      .flatMap((file) => parseAllDocuments(readFileSync(file, 'utf8')))
      .flatMap((document) => document.toJS()?.spec?.accessConfig?.allowedGroups ?? []);
    assert.ok(groups.includes('devs'));
    assert.ok(!groups.includes('qa'));
  });

  it('that a session outlives the Pod of its request, which a cluster does not allow', () => {
    assert.match(
      execNote({ execUser: 'me' }),
      /on this machine, as me\.\nSo a session in the Pod of a PodAccessRequest goes on when its access ends, /,
    );
  });
});
