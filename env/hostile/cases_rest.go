package hostile

var shellCases, processCases, limitCases, outputCases, debuggerCases, evalCases, runCases []Case
