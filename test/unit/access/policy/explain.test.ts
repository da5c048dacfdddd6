import assert from 'node:assert/strict';
import { changePolicy } from '../../../../src/access/policy/change-policy.ts';
import { type Explanation, explain, firstViolation, type RuleBook } from '../../../../src/access/policy/policy.ts';
import { createRequestPolicy, type RequestInput } from '../../../../src/access/policy/request-policy.ts';
import { updateRequestPolicy } from '../../../../src/access/policy/request-update-policy.ts';
import { templatePolicy } from '../../../../src/access/policy/template-policy.ts';
import { explanationLines } from '../../../../src/access/policy/warnings.ts';
import { readyTemplate, templateWith } from '../../admission/support.ts';

const requester = { username: 'alice', uid: '', groups: ['devs'], time: '2026-11-21T09:00:00Z' };
const input: RequestInput = {
  operation: 'CREATE',
  kind: 'PodAccessRequest',
  namespace: 'payments',
  name: 'debug',
  templateName: 'payments-shell',
  caller: { username: 'alice', uid: '', groups: ['devs'] },
  spec: { templateName: 'payments-shell', requester },
  askedAtMs: Date.UTC(2026, 10, 21, 9),
  template: readyTemplate(),
  alreadyHolds: false,
};
const explained = (over: Partial<RequestInput>): Explanation[] => explain(createRequestPolicy, { ...input, ...over });
const failing = (over: Partial<RequestInput>): (string | undefined)[][] =>
  explained(over)
    .filter(({ verdict }) => verdict === 'fail')
    .map(({ rule, violation, remedy }) => [rule, violation?.code, remedy]);

const lacksRights = {
  type: 'AuthorHoldsRights',
  reason: 'AuthorLacksRights',
  message:
    'author "erin" may not get pods/log in namespace "payments"; a template hands out only what its author may do: ask someone who holds all of its permissions to update it, for example: kubectl patch podaccesstemplate payments-shell -n payments --type=merge -p \'{"spec":{"author":{"username":"me"}}}\'',
};

describe('explaining a policy', () => {
  it('passes every rule of a request that would be granted', () => {
    assert.deepEqual(
      explained({}).map(({ rule, verdict, remedy }) => [rule, verdict, remedy]),
      Object.keys(createRequestPolicy).map((rule) => [rule, 'pass', undefined]),
    );
  });

  for (const [title, over, expected] of [
    [
      'everything that is wrong at once',
      {
        spec: { ...input.spec, duration: 'a while', revoked: true },
        limits: [{ scope: 'user', name: 'alice', limit: 1, open: 1, freeAt: '2026-11-21T10:00:00Z', canMove: true }],
      },
      [
        ['duration', 'InvalidDuration', 'write a Go duration from 1s up, such as 30m, or leave spec.duration out'],
        ['not-revoked', 'InvalidRequest', 'leave spec.revoked out'],
        [
          'limits',
          'LimitReached',
          'revoke an open request, or create this one at 2026-11-21T10:00:00Z, or later if a holder extends access',
        ],
      ],
    ],
    [
      'a template without its gateway',
      {
        template: readyTemplate({
          ready: false,
          failing: { type: 'GatewayAvailable', reason: 'GatewayUnavailable', message: 'the APIService is missing' },
        }),
      },
      [
        [
          'template-ready',
          'TemplateNotReady',
          'ask an administrator to correct this: GatewayAvailable is not True: the APIService is missing',
        ],
      ],
    ],
    [
      'a template whose author lacks a permission',
      { template: readyTemplate({ ready: false, failing: lacksRights }) },
      [['template-ready', 'TemplateNotReady', `correct this: AuthorHoldsRights is not True: ${lacksRights.message}`]],
    ],
    [
      'a template whose author lacks nothing, but whose rules are invalid',
      { template: readyTemplate({ ready: false, failing: { ...lacksRights, reason: 'InvalidTemplate' } }) },
      [
        [
          'template-ready',
          'TemplateNotReady',
          `ask the author of the template to correct this: AuthorHoldsRights is not True: ${lacksRights.message}`,
        ],
      ],
    ],
    [
      'a template with an invalid duration',
      { template: templateWith({ defaultDuration: 'long' }) },
      [['duration', 'InvalidDuration', 'ask the author of the template to correct its durations']],
    ],
    [
      'a template whose only group no one can be in',
      { template: templateWith({ allowedGroups: ['devs '] }) },
      [
        [
          'eligible',
          'NotEligible',
          'ask the author of the template to remove the space from ["devs "], which no one can be in (InvalidGroup)',
        ],
      ],
    ],
    [
      'a template with another group that no one can be in',
      { template: templateWith({ allowedGroups: [' devs', 'sre'] }) },
      [
        [
          'eligible',
          'NotEligible',
          'join one of [sre], or ask the author of the template to remove the space from [" devs"], which no one can be in (InvalidGroup)',
        ],
      ],
    ],
  ] as const) {
    it(`lists for ${title} which rules fail, with remedies`, () => {
      assert.deepEqual(failing(over), expected);
    });
  }

  it('leaves rules open that depend on a missing template', () => {
    const verdicts = Object.fromEntries(
      explained({ template: { found: false } }).map(({ rule, verdict }) => [rule, verdict]),
    );
    assert.deepEqual(verdicts, {
      requester: 'pass',
      identity: 'pass',
      template: 'fail',
      'template-ready': 'unknown',
      'template-groups': 'unknown',
      'template-people': 'unknown',
      emergency: 'unknown',
      review: 'pass',
      eligible: 'unknown',
      duration: 'unknown',
      reason: 'unknown',
      start: 'unknown',
      'target-pod': 'pass',
      'not-revoked': 'pass',
      'requester-groups': 'pass',
      'later-fields': 'pass',
      limits: 'unknown',
    });
  });

  it('fails first at the deciding rule', () => {
    const caller = { username: '', uid: '', groups: [] };
    for (const over of [{ caller }, { template: { found: false } }, { alreadyHolds: true }] as const) {
      const first = explained(over).find(({ verdict }) => verdict === 'fail');
      assert.deepEqual(first?.violation, firstViolation(createRequestPolicy, { ...input, ...over }));
    }
  });

  it('has a clause and a remedy for every rule of every rule book', () => {
    const update: RequestInput = { ...input, operation: 'UPDATE', oldSpec: input.spec };
    const { spec } = readyTemplate();
    const template = { kind: 'PodAccessTemplate', namespace: 'a', name: 'b', spec, grantable: [] } as const;
    const clauses = [
      ...clausesOf(createRequestPolicy, input),
      ...clausesOf(updateRequestPolicy, update),
      ...clausesOf(changePolicy, { ...update, oldSpec: input.spec, approvalState: undefined, access: undefined }),
      ...clausesOf(templatePolicy, template),
    ];
    for (const clause of clauses) assert.match(clause, /^[a-z][^\n]{5,100}$/);
  });
});

describe('the lines of an explanation', () => {
  it('are violations, then rules that could not be checked, then the number of rules that passed', () => {
    const lines = explanationLines(explained({ template: { found: false } }));
    assert.equal(
      lines[0],
      'FAIL template: a template of this name, for requests of this kind, exists in the namespace; to pass: name a template of this namespace in spec.templateName',
    );
    assert.deepEqual(
      lines
        .map((line) => /^(FAIL|not checked|\d+ rules passed)/.exec(line)?.[1])
        .filter((start) => start !== 'not checked'),
      ['FAIL', lines.at(-1)],
    );
    assert.equal(lines[1], 'not checked template-ready: whether the template is ready');
    const unchecked = lines.filter((line) => line.startsWith('not checked '));
    assert.deepEqual(
      unchecked.filter((line) => line.includes('to pass')),
      [],
      'asks to correct what no rule found',
    );
    const passed = explained({ template: { found: false } }).filter(({ verdict }) => verdict === 'pass').length;
    assert.equal(lines.at(-1), `${passed} rules passed`);
  });

  it('name the kind of request that can use the template, if only a template of the other kind has the name', () => {
    const [first] = explanationLines(explained({ template: { found: false, otherKind: 'ExecAccessTemplate' } }));
    assert.equal(
      first,
      'FAIL template: a template of this name, for requests of this kind, exists in the namespace; to pass: create a request of kind ExecAccessRequest, because template payments-shell is of kind ExecAccessTemplate',
    );
  });

  it('are cut to the limits of an API server', () => {
    const template = templateWith({ allowedGroups: Array.from({ length: 40 }, () => 'g'.repeat(60)) });
    const lines = explanationLines(explained({ template }));
    assert.ok(lines.every((line) => line.length <= 1024));
    assert.ok(lines.some((line) => / \.\.\. g+/.test(line)));
  });

  it('keep which permission the author of the template lacks, and who can correct that', () => {
    const [line = ''] = explanationLines(
      explained({ template: readyTemplate({ ready: false, failing: lacksRights }) }),
    );
    assert.ok(line.endsWith(`; to pass: correct this: AuthorHoldsRights is not True: ${lacksRights.message}`), line);
  });
});

const clausesOf = <Input>(book: RuleBook<Input>, of: Input): string[] =>
  Object.values(book).flatMap(({ requirement: wants, remedy }) => [wants, remedy(of)]);
