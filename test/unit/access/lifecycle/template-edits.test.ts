import assert from 'node:assert/strict';
import type { AccessKind } from '../../../../src/access/access-kind.ts';
import { TemplateEdits } from '../../../../src/access/lifecycle/template-edits.ts';
import type { RequestView, TemplateView } from '../../../../src/access/stores/access-views.ts';
import type { TemplateSpec } from '../../../../src/api/access/kinds.ts';
import type { AccessConfig } from '../../../../src/api/access/template-spec.ts';
import type { Client } from '../../../../src/kube/client.ts';

const { signal } = new AbortController();
const minute = 60_000;
const user = [{ kind: 'User', name: 'alice' }];
const groups = [
  { kind: 'Group', name: 'devs' },
  { kind: 'Group', name: 'sre' },
];

describe('the effect of later template edits on a grant', () => {
  let template: Pick<TemplateView, 'uid' | 'generation' | 'spec'> | undefined;
  let asked: number;
  let holds: boolean;
  let edits: TemplateEdits;

  beforeEach(() => {
    template = undefined;
    asked = 0;
    holds = false;
    const client = {
      isAllowed: () => {
        asked += 1;
        return Promise.resolve(holds);
      },
    } as Partial<Client> as Client;
    edits = new TemplateEdits({
      kind: { templateKind: 'ExecAccessTemplate', templates: { get: () => template } } as unknown as AccessKind,
      client,
    });
  });

  const request = (subjects: readonly object[] = user) =>
    ({
      uid: 'r-1',
      namespace: 'payments',
      createdAtMs: 1000,
      extensions: [],
      spec: { requester: { username: 'alice', uid: '', groups: ['devs'], time: '' } },
      grant: { template: { name: 'shell', uid: 't-1', generation: 3 }, subjects },
    }) as unknown as RequestView;
  const edited = (config: Partial<AccessConfig>, generation = 4, uid = 't-1'): void => {
    const accessConfig = { allowedGroups: ['devs'], defaultDuration: '1m', maxDuration: '1h', ...config };
    template = { uid, generation, spec: { accessConfig } as TemplateSpec };
  };

  it('ends it at the shorter maximum, counted from its creation', () => {
    edited({ maxDuration: '5m' });
    assert.equal(edits.latestEndMs(request()), 1000 + 5 * minute);
  });

  const untouched: [string, () => void][] = [
    ['the template is not known', () => {}],
    ['the template is as it was', () => edited({ maxDuration: '5m', allowedGroups: [] }, 3)],
    ['the store lags behind', () => edited({ maxDuration: '5m', allowedGroups: [] }, 2)],
    ['another template has its name', () => edited({ maxDuration: '5m', allowedGroups: [] }, 4, 't-2')],
  ];
  for (const [title, edit] of untouched) {
    it(`is none while ${title}`, async () => {
      edit();
      assert.equal(edits.latestEndMs(request()), Number.POSITIVE_INFINITY);
      assert.equal(await edits.endingReason(request(), signal), undefined);
      assert.equal(asked, 0);
    });
  }

  it('ignores an invalid maximum', () => {
    edited({ maxDuration: 'soon' });
    assert.equal(edits.latestEndMs(request()), Number.POSITIVE_INFINITY);
  });

  it('keeps it for a requester who is still in an allowed group', async () => {
    edited({ allowedGroups: ['qa', 'devs'] });
    assert.equal(await edits.endingReason(request(), signal), undefined);
    assert.equal(asked, 0);
  });

  it('ends it for a requester who is no longer in an allowed group', async () => {
    edited({ allowedGroups: ['qa'] });
    assert.equal(await edits.endingReason(request(), signal), 'NoLongerAllowed');
  });

  it('keeps it for a requester with the permissions, which are checked once for each edit', async () => {
    holds = true;
    edited({ allowedGroups: ['qa'] });
    for (const _ of [1, 2]) assert.equal(await edits.endingReason(request(), signal), undefined);
    assert.equal(asked, 1);
    holds = false;
    edited({ allowedGroups: ['qa'] }, 5);
    assert.equal(await edits.endingReason(request(), signal), 'NoLongerAllowed');
  });

  const toGroups: [string, Partial<AccessConfig>, string | undefined][] = [
    ['one more group', { grantTo: 'AllowedGroups', allowedGroups: ['devs', 'sre', 'qa'] }, undefined],
    ['one group less', { grantTo: 'AllowedGroups', allowedGroups: ['devs'] }, 'NoLongerAllowed'],
    ['a grant to the requester alone', { grantTo: 'Requester', allowedGroups: ['devs', 'sre'] }, 'NoLongerAllowed'],
  ];
  for (const [title, config, expected] of toGroups) {
    it(`is ${expected ?? 'none'} with ${title}, if the subjects are groups`, async () => {
      edited(config);
      assert.equal(await edits.endingReason(request(groups), signal), expected);
    });
  }
});
