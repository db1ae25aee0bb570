// A control: code that is made at run time, which no ahead-of-time compiler has seen.

using System;
using System.Reflection.Emit;

static class DynamicCode
{
    static void Main()
    {
        var made = new DynamicMethod("one", typeof(int), new Type[0]);
        var code = made.GetILGenerator();
        code.Emit(OpCodes.Ldc_I4_1);
        code.Emit(OpCodes.Ret);
        Console.WriteLine(((Func<int>)made.CreateDelegate(typeof(Func<int>)))());
    }
}
