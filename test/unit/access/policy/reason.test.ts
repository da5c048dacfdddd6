import assert from 'node:assert/strict';
import { reasonConfigViolation, reasonLink, reasonViolation } from '../../../../src/access/policy/reason.ts';

const ticket = { minLength: 10, pattern: '^(INC|CHG)-[0-9]+', prompt: 'ticket and why' };

describe('reasons of requests', () => {
  for (const [reason, config, code] of [
    [undefined, undefined, undefined],
    ['', undefined, undefined],
    [undefined, { minLength: 0 }, undefined],
    [undefined, { minLength: 1 }, 'InvalidRequest'],
    ['.', { minLength: 1 }, undefined],
    ['         .', { minLength: 2 }, 'InvalidRequest'],
    ['0123456789', { minLength: 10 }, undefined],
    ['012345678', { minLength: 10 }, 'InvalidRequest'],
    // Four characters, each of two UTF-16 units.
    ['😀😀😀😀', { minLength: 4 }, undefined],
    ['😀😀😀😀', { minLength: 5 }, 'InvalidRequest'],
    ['INC-42 disk is full', ticket, undefined],
    ['see INC-42', ticket, 'InvalidRequest'],
    ['INC-42', ticket, 'InvalidRequest'],
    ['anything', { minLength: 0, pattern: '(' }, 'InvalidTemplate'],
  ] as const) {
    it(`${code ?? 'accept'}: ${JSON.stringify(reason)} for ${JSON.stringify(config)}`, () => {
      assert.equal(reasonViolation(reason, config)?.code, code);
    });
  }

  it('say what was found and what to write', () => {
    assert.equal(
      reasonViolation(undefined, ticket)?.message,
      'spec.reason is missing; write at least 10 characters, with text that matches "^(INC|CHG)-[0-9]+": ticket and why',
    );
    assert.equal(
      reasonViolation('no ticket at all', ticket)?.message,
      'spec.reason "no ticket at all" does not match "^(INC|CHG)-[0-9]+"; write a reason that matches: ticket and why',
    );
  });

  for (const [pattern, problem] of [
    ['(', /is not valid \(.*missing closing/],
    ['a(?=b)', /is not valid/],
    ['(\\pL{1,500}){2}$', /compiles to \d+ instructions; at most 256 are allowed/],
    ['((a{1000}){1000}){1000}', /is not valid/],
  ] as const) {
    it(`refuse the pattern ${pattern}`, () => {
      const violation = reasonConfigViolation({ minLength: 0, pattern });
      assert.equal(violation?.code, 'InvalidTemplate');
      assert.match(violation?.message ?? '', problem);
    });
  }

  it('match (a+)+$ in linear time', () => {
    assert.equal(reasonViolation(`${'a'.repeat(1023)}!`, { minLength: 0, pattern: '(a+)+$' })?.code, 'InvalidRequest');
  });

  for (const [reason, link, pattern, address] of [
    ['INC-42 full', 'https://tickets.example/{match}', ticket.pattern, 'https://tickets.example/INC-42'],
    ['a/b?c', 'https://t.example/{match}', '.*', 'https://t.example/a%2Fb%3Fc'],
    ['$& a', 'https://t.example/{match}', '.*', 'https://t.example/%24%26%20a'],
    ['none', 'https://t.example/{match}', ticket.pattern, undefined],
    ['none', 'https://t.example/', undefined, 'https://t.example/'],
    ['none', undefined, ticket.pattern, undefined],
  ] as const) {
    it(`link ${JSON.stringify(reason)} by ${link} to ${address}`, () => {
      assert.equal(
        reasonLink(reason, { minLength: 0, ...(link ? { link } : {}), ...(pattern ? { pattern } : {}) }),
        address,
      );
    });
  }
});
