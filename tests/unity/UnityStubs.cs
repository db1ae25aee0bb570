// What of the engine the package and its samples name, written from the engine's public documentation, so that they
// can be compiled and run without it. It is not the engine: a GameObject is a list of components, and Engine.Send calls
// what the engine would call by name.

using System;
using System.Collections.Generic;
using System.Reflection;

namespace UnityEngine
{
    public class Object
    {
        public string name;
        public static implicit operator bool(Object one) { return one != null; }
    }

    public class Component : Object
    {
        public GameObject gameObject;
        public Transform transform { get { return gameObject.transform; } }
        public T GetComponent<T>() where T : Component { return gameObject.GetComponent<T>(); }
    }

    public class Behaviour : Component { public bool enabled; }
    public class MonoBehaviour : Behaviour { }
    public class TextMesh : Component { public string text = ""; }

    public sealed class GameObject : Object
    {
        readonly List<Component> all = new List<Component>();
        public readonly Transform transform;

        public GameObject(string name)
        {
            this.name = name;
            transform = AddComponent<Transform>();
        }

        public T AddComponent<T>() where T : Component, new()
        {
            var made = new T { gameObject = this };
            all.Add(made);
            return made;
        }

        public T GetComponent<T>() where T : Component { return (T)all.Find(one => one is T); }
    }

    public class Transform : Component
    {
        public Vector3 position, localScale = Vector3.one;
        public Quaternion rotation = Quaternion.identity;
    }

    public struct Vector3
    {
        public float x, y, z;

        public Vector3(float x, float y, float z)
        {
            this.x = x;
            this.y = y;
            this.z = z;
        }

        public static Vector3 zero { get { return new Vector3(0, 0, 0); } }
        public static Vector3 one { get { return new Vector3(1, 1, 1); } }
        public static Vector3 operator +(Vector3 a, Vector3 b) { return new Vector3(a.x + b.x, a.y + b.y, a.z + b.z); }
        public static Vector3 operator *(float s, Vector3 v) { return new Vector3(s * v.x, s * v.y, s * v.z); }
        public static Vector3 operator *(Vector3 v, float s) { return s * v; }

        public override string ToString() { return "(" + x.ToString("F2") + ", " + y.ToString("F2") + ", " + z.ToString("F2") + ")"; }

        public static Vector3 Cross(Vector3 a, Vector3 b)
        {
            return new Vector3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
        }
    }

    public struct Quaternion
    {
        public float x, y, z, w;

        public Quaternion(float x, float y, float z, float w)
        {
            this.x = x;
            this.y = y;
            this.z = z;
            this.w = w;
        }

        public static Quaternion identity { get { return new Quaternion(0, 0, 0, 1); } }

        public static Vector3 operator *(Quaternion q, Vector3 v)
        {
            var axis = new Vector3(q.x, q.y, q.z);
            Vector3 twice = 2f * Vector3.Cross(axis, v);
            return v + q.w * twice + Vector3.Cross(axis, twice);
        }
    }

    public static class Mathf
    {
        public const float Deg2Rad = (float)(Math.PI / 180);
        public static float Sin(float a) { return (float)Math.Sin(a); }
        public static float Cos(float a) { return (float)Math.Cos(a); }
        public static float Tan(float a) { return (float)Math.Tan(a); }
        public static float Min(float a, float b) { return Math.Min(a, b); }
        public static int Min(int a, int b) { return Math.Min(a, b); }
    }

    public static class Time { public static float unscaledTime { get; set; } }

    public static class Application
    {
        public static bool isPlaying { get; set; }
        public static string persistentDataPath { get; set; }
    }

    public static class Debug
    {
        public static void Log(object message) { Console.WriteLine("log " + message); }
        public static void LogWarning(object message, Object context) { Console.WriteLine("warning " + message); }
    }

    [AttributeUsage(AttributeTargets.Field)] public sealed class HeaderAttribute : Attribute { public HeaderAttribute(string header) { } }
    [AttributeUsage(AttributeTargets.Field)] public sealed class TooltipAttribute : Attribute { public TooltipAttribute(string tooltip) { } }
    [AttributeUsage(AttributeTargets.Class)] public sealed class AddComponentMenu : Attribute { public AddComponentMenu(string menuName) { } }
    [AttributeUsage(AttributeTargets.Class)] public sealed class RequireComponent : Attribute { public RequireComponent(Type required) { } }

    /// <summary>Ours: the engine calls OnEnable, Update and so on by their names.</summary>
    public static class Engine
    {
        public static void Send(object to, string message)
        {
            var method = to.GetType().GetMethod(message, BindingFlags.Instance | BindingFlags.NonPublic | BindingFlags.Public);
            if (method != null) method.Invoke(to, null);
        }
    }
}

namespace UnityEngine.Events
{
    public delegate void UnityAction<T>(T value);

    public class UnityEvent<T>
    {
        event UnityAction<T> All;
        public void AddListener(UnityAction<T> one) { All += one; }
        public void RemoveListener(UnityAction<T> one) { All -= one; }
        public void Invoke(T value) { if (All != null) All(value); }
    }
}

namespace UnityEditor
{
    [AttributeUsage(AttributeTargets.Class)] public sealed class CustomEditor : Attribute { public CustomEditor(Type inspected) { } }
    public enum MessageType { None, Info, Warning, Error }

    public class Editor
    {
        public UnityEngine.Object target { get; set; }
        public virtual bool RequiresConstantRepaint() { return false; }
        public virtual void OnInspectorGUI() { }
        public bool DrawDefaultInspector() { return true; }
    }

    public static class EditorGUILayout
    {
        public static void LabelField(string label, string text) { Console.WriteLine("label " + label + ": " + text); }
        public static void HelpBox(string message, MessageType type) { Console.WriteLine("box " + type + ": " + message.Split('\n')[0]); }
    }
}
